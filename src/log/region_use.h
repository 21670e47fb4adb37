// Counts how much of each linked region is still needed. Cleaning chooses regions by these counts.
//
// Owns the counts: names, holds and live bytes, by head and slot. Requires: the head slots outlive it, and the index
// reports each change of an entry (CountName, CountLeft). The shard's thread alone calls it.
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
  uint32_t names = 0;       // Addresses in the region that entries name.
  uint32_t held = 0;        // Calls of Hold without their Release.
  uint64_t live_bytes = 0;  // Of the objects that entries name, by the sizes in their headers.
  uint64_t filled = 0;      // Bytes of all its objects; 0 before ForEachFull has shown it.
  [[nodiscard]] bool none() const { return names == 0 && held == 0; }
};

struct LinkedRegion {
  uint32_t region = 0;
  uint32_t generation = 0;
  uint32_t head = 0;
  uint32_t slot = 0;
  uint64_t age = 0;  // how many regions the shard has linked since this one
  Use use;
  bool crowded = false;  // its head is (HeadSlots::IsCrowded)
  // Bytes that nobody needs.
  [[nodiscard]] uint64_t dead_bytes() const { return use.filled - std::min(use.filled, use.live_bytes); }
};

class RegionUse {
 public:
  RegionUse(const nvm::Writer& nvm, const ShardShape& shape, const HeadSlots& slots, const Objects& objects);

  // Counts that one more entry names the address. bytes: the space of the object there, as BytesOf returns it.
  void CountName(uint32_t head, format::LogAddress address, uint64_t bytes) {
    Use& use = UseAt(head, shape_.geometry().SlotOf(address));
    ++use.names;
    use.live_bytes += bytes;
    bytes_live_ += bytes;
  }
  // Counts that an entry leaves the address.
  void CountLeft(uint32_t head, format::LogAddress address, uint64_t bytes) {
    Use& use = UseAt(head, shape_.geometry().SlotOf(address));
    --use.names;
    ++changes_;
    const uint64_t known = std::min(bytes, use.live_bytes);
    use.live_bytes -= known;
    bytes_live_ -= known;
  }
  // Returns the space of the object at the address, by its header, or 0 if no object can be there.
  [[nodiscard]] uint64_t BytesOf(uint32_t head, format::LogAddress address) const;
  // Holds the region of the address: it stays as it is until Release was called once for each Hold. A client may still
  // write there, or read an older version there.
  void Hold(uint32_t head, format::LogAddress address) { ++UseAt(head, shape_.geometry().SlotOf(address)).held; }
  void Release(uint32_t head, format::LogAddress address);
  // Calls visit(LinkedRegion) for each full region.
  template <class Visit>
  void ForEachFull(Visit&& visit) {
    for (const uint32_t head : shape_.heads()) {
      for (const uint32_t slot : shape_.slots()) {
        if (slots_.IsFull(head, slot)) visit(Linked(head, slot));
      }
    }
  }
  // Returns a number that grows when nobody holds a full region any more.
  [[nodiscard]] uint64_t releases() const { return releases_; }
  // Resets the counts of a head slot, when its region is emptied.
  void Forget(uint32_t head, uint32_t slot);

  // Returns about how many bytes the objects that entries name take.
  [[nodiscard]] uint64_t bytes_live() const { return bytes_live_; }
  // Returns a number that grows when an entry leaves an address, and when nobody holds a full region any more.
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
  const uint32_t slots_per_head_;  // with one more, for addresses in no slot, which a damaged entry may have
  std::vector<Use> uses_;
  uint64_t bytes_live_ = 0;
  uint64_t changes_ = 0;
  uint64_t releases_ = 0;
};

}  // namespace erda::log
