// The table of the reservations that sessions have not finished. It lies in DRAM, since only live clients can finish
// them. After a restart nothing is in flight.
//
// Owns the table alone. The class Reservations begins and ends each reservation. The shard's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/log_address.h"

namespace erda::server {

using SessionId = uint32_t;
// Stands for no session: the shard alone ends the reservation.
inline constexpr SessionId kNoSession = UINT32_MAX;

struct Reservation {
  uint64_t key_hash = 0;
  uint64_t version = 0;
  format::LogAddress address;
  uint32_t head = 0;
  uint64_t bytes = 0;
  SessionId session = 0;
  bool awaits_commit = false;  // The writer will commit it.
  bool settled = false;        // It is settled, and the table keeps it only until that commit comes.
  bool superseded = false;     // A delete came after it: it no longer counts, even if its value arrives.
  bool awaits_hold = false;    // It is whole and flushed, and is settled once the medium holds it (HoldQueue).
  bool overtaken = false;      // On a pool with a journal: a newer version of the key is settled already.
  bool is_tombstone = false;   // Of a delete that ends once the medium holds the tombstone.
  // The put was judged by a version with this deadline, and the clock stands before it; or 0.
  uint64_t judged_deadline = 0;
};

// Finds reservations by key hash or by walking. Not thread-safe.
class InFlight {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  InFlight() : buckets_(kBuckets, kNone) {}

  Id Add(const Reservation& reservation);
  void Remove(Id id);
  [[nodiscard]] Reservation& At(Id id) { return nodes_[id].reservation; }
  [[nodiscard]] const Reservation& At(Id id) const { return nodes_[id].reservation; }
  // Returns kNone if the table has no such reservation.
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
  // Visits up to `limit` places of the table after *cursor, and leaves *cursor at the last of them: the next call goes
  // on there.
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
    Id next = kNone;    // the next one in the bucket, or in the free list
    Id before = kNone;  // the one before it in the bucket
    bool used = false;
  };

  [[nodiscard]] Id BucketOf(uint64_t key_hash) const { return buckets_[key_hash % kBuckets]; }

  std::vector<Id> buckets_;
  std::vector<Node> nodes_;
  Id free_ = kNone;
  size_t size_ = 0;
};

}  // namespace erda::server
