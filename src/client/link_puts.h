// The state of the puts (put.h) on one link: chunks, the staging buffer, and the operations that wait for a place.
//
// The link owns it, and begins and ends it with each connection. Only the client's thread calls it.
#pragma once

#include <cstdint>

#include "base/fifo.h"
#include "client/delegated.h"
#include "client/key_order.h"
#include "client/known_shard.h"
#include "client/staging.h"

namespace erda::client {

class LinkPuts {
 public:
  Staging staging;
  bool had_large = false;  // a put came that did not fit into a request
  Fifo<OpIndex> waiting_for_slot;
  Fifo<OpIndex> waiting_for_staging;

  // Begins a new connection with a staging buffer of `staging_bytes`, 0 if the server gave none, and at most
  // `puts_max` puts at once.
  void Reset(const KnownShard& known, uint64_t staging_bytes, uint32_t puts_max) {
    waiting_for_staging.Reserve(puts_max);
    delegated_.Reset(known.FirstHead(), known.geometry().heads_per_shard, format::ChunkBytesMax(known.geometry()));
    staging.Reset(staging_bytes, puts_max);
  }
  // The connection is gone, and the operations on it end. Needs no memory.
  void Forget() {
    waiting_for_slot.clear();
    waiting_for_staging.clear();
    delegated_.Reset(0, 0, 0);
    staging.Reset(0, 0);
  }
  // Returns true if the client has chunks there, or requests about chunks.
  [[nodiscard]] bool has_chunks() const { return delegated_.active(); }

 private:
  friend class OwnRequests;  // It alone changes the chunks, and sends each request that a change makes.

  Delegated delegated_;
};

}  // namespace erda::client
