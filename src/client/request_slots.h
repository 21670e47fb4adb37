// The request slots of a connection: numbered places at the server for one request each, and who uses each place.
//
// Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "client/key_order.h"

namespace erda::client {

class RequestSlots {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr OpIndex kFree = kNoOp;

  // Begins a new connection, on which the server gave this number of slots of this size.
  void Reset(uint32_t slots, uint32_t slot_bytes);

  // Takes a slot for this owner: an operation, or a request that the client sends for itself. Returns kNoSlot if all
  // are in use.
  uint32_t Take(OpIndex owner) {
    if (free_.empty()) return kNoSlot;
    const uint32_t slot = free_.back();
    free_.pop_back();
    owners_[slot] = owner;
    return slot;
  }
  // Gives a slot back. REQUIRES: Take returned it, and it was not given back.
  void Free(uint32_t slot) {
    owners_[slot] = kFree;
    free_.push_back(slot);
  }

  [[nodiscard]] bool has_free() const { return !free_.empty(); }
  // Returns the owner of the slot. Returns kFree if the slot is free, or if there is no slot with this number.
  [[nodiscard]] OpIndex OwnerOf(uint32_t slot) const { return slot < owners_.size() ? owners_[slot] : kFree; }
  // Returns the place of the slot in the region for requests.
  [[nodiscard]] uint64_t OffsetOf(uint32_t slot) const { return uint64_t{slot} * slot_bytes_; }

 private:
  uint32_t slot_bytes_ = 0;
  std::vector<OpIndex> owners_;  // by slot
  std::vector<uint32_t> free_;
};

}  // namespace erda::client
