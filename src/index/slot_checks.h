// Checks of index slots, in the server's memory: 16 bits of each entry, as the index stored it. If an entry does not
// fit its check, something else than the index changed it: a flipped bit of the medium, or a wild write. If one bit
// flipped, the check says which.
//
// Owns the checks. A server that starts knows none. It takes the entry of each slot for right when it counts the slot
// (Index::Count). The shard's thread calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "format/index_entry.h"

namespace erda::index {

class SlotChecks {
 public:
  // block_shift: a block has 1 << block_shift slots.
  explicit SlotChecks(uint32_t block_shift) : block_shift_(block_shift) {}

  // At least this many slots have checks from now on. A new check says nothing until Keep.
  void Grow(uint64_t slots);
  [[nodiscard]] uint64_t slots() const { return blocks_.size() << block_shift_; }

  // The slot holds this entry from now on. Nothing happens for a slot that has no check.
  void Keep(uint64_t slot, format::IndexEntry entry) {
    if (slot < slots()) At(slot) = Of(entry);
  }
  // REQUIRES: the slot has a check.
  [[nodiscard]] bool Fits(uint64_t slot, format::IndexEntry entry) const { return At(slot) == Of(entry); }
  // Returns the entry with one of its bits flipped, if exactly one such entry fits the check. REQUIRES: the slot has a
  // check.
  [[nodiscard]] std::optional<format::IndexEntry> WithoutFlip(uint64_t slot, format::IndexEntry entry) const;

 private:
  // A flipped bit changes the upper 16 bits of the sum. By these factors, each of the 128 bits changes them by a
  // different amount. So the check tells the bits apart. tests/index/slot_checks_test.cc looks at all of them.
  static constexpr uint64_t kWordFactor = 0xcd613e30d8f16adf;
  static constexpr uint64_t kTagFactor = 0x1e2feb89414c343d;
  static constexpr uint64_t kHintsFactor = 0xc2ce6f447ed4d57b;

  [[nodiscard]] static uint16_t Of(format::IndexEntry entry) {
    return static_cast<uint16_t>(
        (entry.word * kWordFactor + (entry.meta >> 32) * kTagFactor + (entry.meta & UINT32_MAX) * kHintsFactor) >> 48);
  }
  // The checks are in blocks, so that growth copies none.
  [[nodiscard]] uint16_t& At(uint64_t slot) const {
    return blocks_[slot >> block_shift_][slot & ((uint64_t{1} << block_shift_) - 1)];
  }

  const uint32_t block_shift_;
  std::vector<uint16_t*> blocks_;
  std::vector<std::unique_ptr<uint16_t[]>> memory_;  // One piece for each Grow.
};

}  // namespace erda::index
