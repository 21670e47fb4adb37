// The table of what sessions have reserved and not finished. It is kept in DRAM, since only live clients can finish it.
// After a restart nothing is in flight.
//
// Owns: the table alone. reservations.h gives each of these its beginning and its end. The shard's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/log_address.h"

namespace erda::server {

using SessionId = uint32_t;

struct Reservation {
  uint64_t key_hash = 0;
  uint64_t version = 0;
  format::LogAddress address;
  uint32_t head = 0;
  uint64_t bytes = 0;
  SessionId session = 0;
  bool awaits_commit = false;  // its writer will say when it is placed
  bool settled = false;        // and kept only until that commit comes
  bool superseded = false;     // a delete came after it: it no longer counts, whether it arrives or not
};

// Found by key hash and by walking. Not thread-safe.
class InFlight {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  InFlight() : buckets_(kBuckets, kNone) {}

  Id Add(const Reservation& reservation);
  void Remove(Id id);
  [[nodiscard]] Reservation& At(Id id) { return nodes_[id].reservation; }
  [[nodiscard]] const Reservation& At(Id id) const { return nodes_[id].reservation; }
  // kNone if there is none.
  [[nodiscard]] Id Find(uint64_t key_hash, uint32_t head, format::LogAddress address) const;

  // Calls visit(Id, const Reservation&) for all, or for those with the hash. The visit may remove the one that it is
  // given.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (Id id = 0; id < nodes_.size(); ++id) {
      if (nodes_[id].used) visit(id, nodes_[id].reservation);
    }
  }
  template <class Visit>
  void ForEachOf(uint64_t key_hash, Visit&& visit) const {
    for (Id id = BucketOf(key_hash); id != kNone;) {
      const Id next = nodes_[id].next;
      if (nodes_[id].reservation.key_hash == key_hash) visit(id, nodes_[id].reservation);
      id = next;
    }
  }
  // Visits up to `limit` places after *cursor, and leaves *cursor at the last of them: the next call goes on there.
  template <class Visit>
  void ForSome(size_t limit, Id* cursor, Visit&& visit) const {
    for (size_t i = 0; i < limit && i < nodes_.size(); ++i) {
      *cursor = *cursor + 1 < nodes_.size() ? *cursor + 1 : 0;
      if (nodes_[*cursor].used) visit(*cursor, nodes_[*cursor].reservation);
    }
  }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  static constexpr size_t kBuckets = 4096;
  struct Node {
    Reservation reservation;
    Id next = kNone;  // in the bucket, or in the free list
    bool used = false;
  };

  [[nodiscard]] Id BucketOf(uint64_t key_hash) const { return buckets_[key_hash % kBuckets]; }

  std::vector<Id> buckets_;
  std::vector<Node> nodes_;
  Id free_ = kNone;
  size_t size_ = 0;
};

}  // namespace erda::server
