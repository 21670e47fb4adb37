// Entries in the log that are not applied yet, in the order of the log. The hash of its key finds an entry.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "bench/schemes/entry.h"

namespace erda::schemes {

using Owner = uint32_t;  // The session whose client writes an entry.
inline constexpr Owner kNobody = UINT32_MAX;

struct Pending {
  uint64_t position = 0;
  uint64_t key_hash = 0;
  PairSizes sizes;
  Owner owner = kNobody;    // The session that may still be writing it.
  bool whole = false;       // Verified.
  bool persistent = false;  // Persistent, or it will be as soon as it is whole.
  bool counts_as_new = false;
  uint32_t partial_looks = 0;  // Looks of Apply that found only its beginning.
  uint64_t room = 0;           // Room in the destination storage, taken for it; 0: none.
  uint64_t next_older = 0;     // Belongs to the table: the next entry in the same bucket.
};

class PendingTable {
 public:
  using Id = uint64_t;  // From 1 on, never used again.

  explicit PendingTable(size_t capacity)
      : records_(std::bit_ceil(capacity)), buckets_(std::bit_ceil(capacity), Id{0}) {}

  [[nodiscard]] bool empty() const { return first_ == next_; }
  [[nodiscard]] bool full() const { return size() == records_.size(); }
  [[nodiscard]] size_t size() const { return next_ - first_; }
  [[nodiscard]] Id first() const { return first_; }
  [[nodiscard]] Id end() const { return next_; }
  [[nodiscard]] Pending& At(Id id) { return records_[id & (records_.size() - 1)]; }
  [[nodiscard]] const Pending& At(Id id) const { return records_[id & (records_.size() - 1)]; }

  // REQUIRES: not full().
  void Push(Pending pending) {
    Id& newest = BucketOf(pending.key_hash);
    pending.next_older = newest;
    newest = next_;
    At(next_++) = pending;
  }
  // Links to removed entries stay; their numbers show that they are gone.
  void PopFirst() { ++first_; }

  // Calls visit(Pending&) for the entries with this hash, newest first, until it returns true. Returns whether it did.
  template <class Visit>
  bool FindNewest(uint64_t key_hash, Visit&& visit) {
    for (Id id = BucketOf(key_hash); id >= first_; id = At(id).next_older) {
      if (At(id).key_hash == key_hash && visit(At(id))) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] Id& BucketOf(uint64_t key_hash) { return buckets_[key_hash & (buckets_.size() - 1)]; }

  std::vector<Pending> records_;
  std::vector<Id> buckets_;
  Id first_ = 1;
  Id next_ = 1;
};

}  // namespace erda::schemes
