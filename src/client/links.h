// The links of one client, one for each shard, and the pool that their servers described.
//
// Owns the completion queue and the links. It makes a link once it knows of the shard, and never removes one, since
// operations point at it. Connections (connections.h) connects and closes them. Only the client's thread calls it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "client/link.h"
#include "client/operation.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/geometry.h"
#include "format/messages.h"

namespace erda::client {

// The pool, as the servers described it. Before the first connection it is not known.
struct KnownPool {
  bool is_known = false;
  format::Geometry geometry{};
  std::array<uint8_t, 16> uuid{};
  HashSeed hash_seed{};

  // Returns the largest value for a key of this size; 0 while the pool is not known.
  [[nodiscard]] size_t ValueBytesMax(size_t key_bytes) const {
    return is_known ? format::ValueBytesMax(geometry, key_bytes) : 0;
  }
  [[nodiscard]] uint32_t seed() const { return format::PoolSeed(uuid); }
  // Returns true if this link's server has the same pool. A pool that has grown is the same.
  [[nodiscard]] bool IsOf(const Link& link) const {
    return is_known && uuid == link.hello().pool_uuid && hash_seed == link.hello().hash_seed &&
           geometry.shards == link.geometry().shards && geometry.heads_per_shard == link.geometry().heads_per_shard;
  }
};

class Links {
 public:
  Links(fabric::Fabric& fabric, std::string address, uint64_t client_id)
      : fabric_(fabric), address_(std::move(address)), client_id_(client_id) {}
  // Makes the queue, and the link to the first shard.
  Status Prepare();

  // Takes what this link's server said of its pool. Returns true if that is another pool than before. Then the client
  // knows nothing of the other shards any more.
  bool Learn(const Link& link);
  // Nobody knows any more which shard a key is in, until the next Learn.
  void ForgetPool() { pool_.is_known = false; }
  // Destroys all links, and their channels.
  void Clear() { links_.clear(); }

  [[nodiscard]] fabric::CompletionQueue& queue() { return *queue_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const KnownPool& pool() const { return pool_; }

  // The links to the pool's shards, by shard. Before the first connection: the link to the first shard.
  [[nodiscard]] size_t size() const { return pool_.is_known ? pool_.geometry.shards : 1; }
  [[nodiscard]] auto begin() const { return links_.begin(); }
  [[nodiscard]] auto end() const { return links_.begin() + static_cast<ptrdiff_t>(size()); }
  [[nodiscard]] const std::unique_ptr<Link>& operator[](size_t shard) const { return links_[shard]; }
  // The same, and links to shards that an earlier pool had.
  [[nodiscard]] std::span<const std::unique_ptr<Link>> all() const { return links_; }
  // REQUIRES: the pool is known.
  [[nodiscard]] Link& OfKey(uint64_t key_hash) const { return *links_[pool_.geometry.ShardOf(key_hash)]; }
  [[nodiscard]] Link& Of(const Operation& op) const {
    if (op.shard != Operation::kByKey) return *links_[op.shard];
    return pool_.is_known ? OfKey(op.key_hash) : *links_[0];
  }
  // Returns true if the client has a chunk of some log, or requests about one. Then servers may have messages about it.
  [[nodiscard]] bool HasChunks() const;

 private:
  void Add(uint32_t shard) { links_.push_back(std::make_unique<Link>(fabric_, *queue_, address_, shard, client_id_)); }

  fabric::Fabric& fabric_;
  const std::string address_;
  const uint64_t client_id_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  KnownPool pool_;
  std::vector<std::unique_ptr<Link>> links_;  // by shard
};

}  // namespace erda::client
