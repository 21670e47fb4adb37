// How much of each linked region is still needed. Cleaning chooses regions by it.
//
// Owns the counts: names, holds and live bytes, by head and slot. Requires: the slots outlive it, and the index
// reports each change of an entry (Count). The shard's thread alone calls it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/log_address.h"
#include "log/head_slots.h"
#include "log/objects.h"
#include "log/shard_shape.h"
#include "nvm/writer.h"

namespace erda::log {

struct Use {
  uint32_t names = 0;       // addresses in the region that entries name
  uint32_t held = 0;        // Hold
  uint64_t live_bytes = 0;  // of the objects that are named, by what their headers say
  uint64_t filled = 0;      // bytes of all its objects, once it is full and ForEachFull has shown it
  [[nodiscard]] bool none() const { return names == 0 && held == 0; }
};

struct LinkedRegion {
  uint32_t region = 0;
  uint32_t generation = 0;
  uint32_t head = 0;
  uint32_t slot = 0;
  uint64_t age = 0;  // how many regions the shard has linked since
  Use use;
  bool crowded = false;  // its head
  // Bytes that nobody needs.
  [[nodiscard]] uint64_t dead_bytes() const { return use.filled - std::min(use.filled, use.live_bytes); }
};

class RegionUse {
 public:
  RegionUse(const nvm::Writer& nvm, const ShardShape& shape, const HeadSlots& slots, const Objects& objects);

  // An entry names the address from now on (change 1), or does not any more (-1).
  void Count(uint32_t head, format::LogAddress address, int change);
  // The region of the address stays as it is until as many calls of Release: a client may still write there, or read an
  // older version there.
  void Hold(uint32_t head, format::LogAddress address) { ++UseAt(head, shape_.geometry().SlotOf(address)).held; }
  void Release(uint32_t head, format::LogAddress address);
  // Calls visit(LinkedRegion) for each region to which nobody appends.
  template <class Visit>
  void ForEachFull(Visit&& visit) {
    for (const uint32_t head : shape_.heads()) {
      for (const uint32_t slot : shape_.slots()) {
        if (slots_.IsFull(head, slot)) visit(Linked(head, slot));
      }
    }
  }
  // Forgets what was counted in a slot, when its region is emptied.
  void Forget(uint32_t head, uint32_t slot);

  // Bytes of the objects that entries name, about.
  [[nodiscard]] uint64_t bytes_live() const { return bytes_live_; }
  // Grows when an entry leaves an address, and when nobody holds a full region any more.
  [[nodiscard]] uint64_t changes() const { return changes_; }

 private:
  [[nodiscard]] Use& UseAt(uint32_t head, uint32_t slot) {
    return uses_[size_t{shape_.HeadInShard(head)} * slots_per_head_ + slot];
  }
  [[nodiscard]] LinkedRegion Linked(uint32_t head, uint32_t slot);
  [[nodiscard]] uint64_t FilledBytes(uint32_t region) const;

  const nvm::Writer& nvm_;
  const ShardShape shape_;
  const HeadSlots& slots_;
  const Objects& objects_;
  const uint32_t slots_per_head_;  // with one more: for addresses that are in no slot, where damage leads
  std::vector<Use> uses_;
  uint64_t bytes_live_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace erda::log
