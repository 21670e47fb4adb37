// The chunks of the log that clients fill themselves, and the puts whose values stand in them (docs/protocol.md, "Put,
// delegated").
//
// Owns: the table of chunks. Requires the same as Puts. Each function that ends a chunk publishes the waiting puts
// first. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "erda/client.h"
#include "format/geometry.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/pool/version_numbers.h"
#include "server/versions/chunk_table.h"
#include "server/versions/outcome.h"
#include "server/versions/publish_batch.h"
#include "server/versions/puts.h"

namespace erda::server {

class Delegating {
 public:
  using Address = format::LogAddress;

  Delegating(nvm::Writer& nvm, const format::Geometry& geometry, log::ShardLog& log, Counters& counters,
             VersionNumbers& numbers, PublishBatch& batch, Puts& puts)
      : nvm_(nvm),
        geometry_(geometry),
        log_(log),
        counters_(counters),
        numbers_(numbers),
        batch_(batch),
        puts_(puts),
        chunks_(log, geometry) {}

  // Gives the session a chunk of the log, of `wanted` bytes or fewer, and at least `least`. Returns kNoChunk if the
  // session may have no chunk now. If `windowed`, the client writes there through a window, and the chunk ends when the
  // window is closed.
  Outcome Delegate(uint32_t head, uint64_t least, uint64_t wanted, SessionId session, bool windowed = false);
  // Puts a value that the session has placed, for an object at `address` in one of its chunks. A client sends these
  // requests in the order of their objects. Returns kNoChunk if the session has no such chunk any more. Returns nullopt
  // if the session broke the protocol: its value is not there, or the next object does not begin at `address`.
  // `waits` says that a put of the key has to wait. A put in a chunk cannot, so it gets kNoChunk.
  std::optional<Outcome> Put(std::string_view key, uint64_t key_hash, uint32_t value_size, uint32_t value_crc, Ack ack,
                             Address address, SessionId session, uint64_t deadline = 0, bool waits = false);
  // (J5) The shard refuses a put of the key at `address`, since its medium has failed. The object gets no header, so a
  // later put in the chunk would come after a gap. Revokes the chunk.
  void Refuse(uint64_t key_hash, Address address, SessionId session);
  // The session gives back the chunk at the address whose header has this version: it writes no more there.
  void GiveBack(uint32_t head, Address address, uint64_t version, SessionId session) {
    chunks_.GiveBack(batch_.Publish(), head, address, version, session);
  }
  // Counts an idle moment, and revokes the chunks that were unused for several of them.
  void Age() {
    if (chunks_.delegates()) chunks_.Age(batch_.Publish());
  }
  // Revokes the chunks in segments that the log no longer appends to, when cleaning is short of space.
  void RevokeFull() {
    if (chunks_.open() > 0) chunks_.RevokeFull(batch_.Publish());
  }
  [[nodiscard]] ChunkTable& chunks() { return chunks_; }
  [[nodiscard]] const ChunkTable& chunks() const { return chunks_; }

 private:
  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  log::ShardLog& log_;
  Counters& counters_;
  VersionNumbers& numbers_;
  PublishBatch& batch_;
  Puts& puts_;
  ChunkTable chunks_;
};

}  // namespace erda::server
