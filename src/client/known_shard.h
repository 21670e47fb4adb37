// The client's knowledge of one shard: the shape of its index, the regions of its heads, and its time.
//
// It learns them from the server's hello, from the control block, and from readings of the block's first words. Owns
// these copies. Only the client's thread calls it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/reading.h"
#include "client/time_hint.h"
#include "format/control_block.h"
#include "format/geometry.h"
#include "format/hello.h"
#include "format/index_layout.h"
#include "format/log_layout.h"

namespace erda::client {

class KnownShard {
 public:
  explicit KnownShard(uint32_t shard) : shard_(shard) {}
  KnownShard(const KnownShard&) = delete;
  KnownShard& operator=(const KnownShard&) = delete;

  // Begins a new connection, perhaps to another server. The head slots stay as they were until the first LearnControl.
  void Reset(const format::HelloReply& hello);
  // The control block has arrived.
  void LearnControl(std::span<const std::byte> control);
  // A reading has arrived. Readings come in any order: the words only grow while the connection lasts.
  void Learn(const Reading& reading);
  void LearnTime(uint64_t time) { time_ = std::max(time_, time); }

  [[nodiscard]] uint32_t shard() const { return shard_; }
  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] uint32_t FirstHead() const { return shard_ * geometry_.heads_per_shard; }
  // Returns the index's shape as the last control block or reading told it. REQUIRES: Reset was called.
  [[nodiscard]] const format::IndexLayout& layout() const { return *layout_; }
  // Returns the latest shard's time that has arrived.
  [[nodiscard]] uint64_t time() const { return time_; }
  // Returns the largest words of all readings that have arrived: each word had this value at some moment before.
  [[nodiscard]] Reading reading() const {
    return {displacements_, layout_->blocks(), 0, layout_->reaches().number(), time_};
  }

  // Returns the slot of a head as of the last control block. Returns no slot if the shard has no such head, or the head
  // no such address.
  [[nodiscard]] format::HeadSlot SlotOf(uint32_t head, format::LogAddress address) const {
    const uint32_t in_shard = head - shard_ * geometry_.heads_per_shard;  // huge if it is an earlier shard's
    const uint64_t layer = geometry_.LayerOf(address);
    if (in_shard >= geometry_.heads_per_shard || layer > geometry_.more_layers) return {};
    return format::HeadSlot(slots_[format::HeadSlotIndex(geometry_, in_shard, layer) + address.slot()]);
  }
  // Returns the number of control blocks that told of changed slots, on all connections of the link.
  [[nodiscard]] uint64_t slot_changes() const { return slot_changes_; }
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::HeadSlot slot, format::LogAddress address) const {
    return {pool_seed_, head, address, slot.generation()};
  }
  // Sets the pool offset of a log address, and the number of bytes from there to the end of its segment. Returns false
  // if there can be no such address, or if the client does not know the region yet.
  bool Resolve(format::HeadSlot slot, format::LogAddress address, uint64_t* offset, uint64_t* bytes) const {
    const uint64_t in_region = geometry_.OffsetInRegion(address);
    if (address.none() || slot.none() || slot.region() >= geometry_.regions()) return false;
    *offset = geometry_.RegionOffset(slot.region()) + in_region;
    *bytes = geometry_.segment_size - (in_region & (geometry_.segment_size - 1));  // a power of two
    return true;
  }

  // The client's guess of the server's time.
  TimeHint time_hint;

 private:
  const uint32_t shard_;
  format::Geometry geometry_{};
  uint32_t pool_seed_ = 0;
  std::vector<uint64_t> slots_;  // of this shard's heads, each a format::HeadSlot
  uint64_t slot_changes_ = 0;
  std::vector<uint32_t> runs_;                 // of the index, as in the control block
  std::optional<format::IndexLayout> layout_;  // refers to geometry_ and runs_
  uint64_t displacements_ = 0;
  uint64_t time_ = 0;
};

}  // namespace erda::client
