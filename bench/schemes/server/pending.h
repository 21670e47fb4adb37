// What stands in the log and is not applied yet, in the order of the log, found by its key's hash.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "bench/schemes/entry.h"

namespace erda::schemes {

using Owner = uint32_t;  // the session whose client writes an entry
inline constexpr Owner kNobody = UINT32_MAX;

struct Pending {
  uint64_t position = 0;
  uint64_t key_hash = 0;
  PairSizes sizes;
  Owner owner = kNobody;    // who may still be writing it
  bool whole = false;       // verified
  bool persistent = false;  // or it is, as soon as it is whole
  bool counts_as_new = false;
  uint32_t partial_looks = 0;  // of Apply, that found its beginning there
  uint64_t room = 0;           // in the destination storage, taken for it; 0: none
  uint64_t next_older = 0;     // the table's: in the same bucket
};

class PendingTable {
 public:
  using Id = uint64_t;  // 1 and up, never used again

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
  // Links to what is gone stay, and are known by their number.
  void PopFirst() { ++first_; }

  // visit(Pending&) for those with this hash, newest first, until it returns true; whether it did.
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
