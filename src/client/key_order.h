// The order of one client's operations on one key. Each begins when those that were started before it are finished, or
// at once if it may follow the one before it.
//
// ops[i] is the operation with index i, and ops.size() is their number. An operation has an index, key_hash and
// key_view. MayFollow(before) says whether it may begin while `before` is under way, and waits_for_turn() whether it
// has not begun. Only the order uses its bucket_next, after and in_order. Only the client's thread calls it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace erda::client {

using OpIndex = uint32_t;
inline constexpr OpIndex kNoOp = UINT32_MAX;

class KeyOrder {
 public:
  void Reset(size_t operations_max) { buckets_.assign(std::bit_ceil(2 * operations_max), kNoOp); }

  // Adds the operation. Returns true if it has to wait for its turn.
  template <class Ops, class Op>
  [[nodiscard]] bool Join(Ops&& ops, Op& op) {
    op.after = kNoOp;
    bool waits = false;
    for (OpIndex i = BucketOf(op.key_hash); i != kNoOp; i = ops[i].bucket_next) {
      if (ops[i].key_hash != op.key_hash || ops[i].after != kNoOp || ops[i].key_view() != op.key_view()) continue;
      ops[i].after = op.index;
      waits = !op.MayFollow(ops[i]);
      break;
    }
    Enter(op);
    return waits;
  }
  // Removes a finished operation. Returns the next operation on the key if its turn has come, and otherwise kNoOp. Its
  // turn has not come if it is under way, or if an operation from before the finished one is.
  template <class Ops, class Op>
  [[nodiscard]] OpIndex Leave(Ops&& ops, Op& op) {
    OpIndex* link = &BucketOf(op.key_hash);
    while (*link != op.index) link = &ops[*link].bucket_next;
    *link = op.bucket_next;
    op.in_order = false;
    for (OpIndex i = BucketOf(op.key_hash); i != kNoOp; i = ops[i].bucket_next) {
      if (ops[i].after != op.index) continue;
      ops[i].after = op.after;
      return kNoOp;
    }
    return op.after != kNoOp && ops[op.after].waits_for_turn() ? op.after : kNoOp;
  }
  // Sorts all operations again, since another seed gave each key a new hash.
  template <class Ops>
  void Rehash(Ops&& ops) {
    buckets_.assign(buckets_.size(), kNoOp);
    for (OpIndex i = 0; i < ops.size(); ++i) {
      if (ops[i].in_order) Enter(ops[i]);
    }
  }

 private:
  template <class Op>
  void Enter(Op& op) {
    OpIndex& bucket = BucketOf(op.key_hash);
    op.bucket_next = bucket;
    bucket = op.index;
    op.in_order = true;
  }
  [[nodiscard]] OpIndex& BucketOf(uint64_t key_hash) { return buckets_[key_hash & (buckets_.size() - 1)]; }

  std::vector<OpIndex> buckets_;  // the added operations
};

}  // namespace erda::client
