// The control block: memory in DRAM that a shard's clients Read one-sidedly. It ends with the server.
//
//   byte 0          8        16           24        32     40  64           704   1024
//   +--------------+--------+------------+---------+------+---+------------+-----+---------------+---------+
//   | displacements| blocks | head       | reaches | time | 0 | counters   | 0   | slots of each | runs: 4 |
//   |              |        | generation |         |      |   | (80 words) |     | head (128     | bytes   |
//   |              |        |            |         |      |   |            |     | words), layer | for     |
//   |              |        |            |         |      |   |            |     | by layer      | each    |
//   +--------------+--------+------------+---------+------+---+------------+-----+---------------+---------+
//
// displacements: the displacement counter, odd while index entries move. A miss counts only if the client read it
// between two equal, even readings (I6), and if the key's block was the same in both.
// reaches: the reaches of all classes of keys (reach.h). A miss counts only if the client looked at the whole window
// that the later reading tells (I15).
// blocks: the number of blocks of the index, by which clients find a key's block (index_layout.h).
// runs: the region of each run of the index plus 1, or 0.
// time: the clock of this shard's deadlines, in milliseconds of Unix time. It never falls. A version has expired when
// this word has reached its deadline (docs/protocol.md, "Expiry").
// head generation: grows after a change of the head slots. A head slot has the region's number plus 1, or 0. Its upper
// half has the region's generation. Without the generation no object in the region verifies.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "format/check.h"
#include "format/counters.h"
#include "format/geometry.h"
#include "format/log_address.h"

namespace erda::format {

// The word of one head slot.
class HeadSlot {
 public:
  constexpr HeadSlot() = default;
  explicit constexpr HeadSlot(uint64_t raw) : raw_(raw) {}
  static constexpr HeadSlot Of(uint32_t region, uint32_t generation) {
    return HeadSlot(uint64_t{generation} << 32 | (region + 1));
  }

  // Returns the word after the region left the head slot. It keeps the generation, so no word comes twice. Two equal
  // readings mean that nothing changed between them.
  [[nodiscard]] constexpr HeadSlot Emptied() const { return HeadSlot(raw_ >> 32 << 32); }

  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  [[nodiscard]] constexpr bool none() const { return static_cast<uint32_t>(raw_) == 0; }
  // REQUIRES: !none().
  [[nodiscard]] constexpr uint32_t region() const { return static_cast<uint32_t>(raw_) - 1; }
  [[nodiscard]] constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_ >> 32); }
  constexpr bool operator==(const HeadSlot&) const = default;

 private:
  uint64_t raw_ = 0;
};

struct ControlBlock {
  uint64_t displacements;
  uint64_t blocks;
  uint64_t head_generation;
  uint64_t reaches;
  uint64_t time;
  uint64_t reserved0[3];
  uint64_t counters[80];
  uint64_t reserved1[40];
};
ERDA_FORMAT_SIZE(ControlBlock, 1024);
ERDA_FORMAT_FIELD(ControlBlock, displacements, 0);
ERDA_FORMAT_FIELD(ControlBlock, blocks, 8);
ERDA_FORMAT_FIELD(ControlBlock, head_generation, 16);
ERDA_FORMAT_FIELD(ControlBlock, reaches, 24);
ERDA_FORMAT_FIELD(ControlBlock, time, 32);
ERDA_FORMAT_FIELD(ControlBlock, counters, 64);
static_assert(static_cast<size_t>(Counter::kCount) <= 80);

inline constexpr uint64_t kControlHeadsOffset = sizeof(ControlBlock);
inline constexpr uint64_t kControlHeadBytes = kSlotsPerHead * sizeof(uint64_t);
// Returns the offset of a HeadSlot of layer 0. The number of the head counts from the shard's first head.
constexpr uint64_t HeadSlotOffset(uint32_t head_in_shard, uint32_t slot) {
  return kControlHeadsOffset + head_in_shard * kControlHeadBytes + slot * sizeof(uint64_t);
}
// Returns the offset of a HeadSlot of any layer.
constexpr uint64_t HeadSlotOffset(const Geometry& g, uint32_t head_in_shard, uint32_t slot) {
  return HeadSlotOffset(head_in_shard + slot / kSlotsPerHead * g.heads_per_shard, slot % kSlotsPerHead);
}
// Returns the number of head slots before the head's first slot of this layer.
constexpr uint64_t HeadSlotIndex(const Geometry& g, uint32_t head_in_shard, uint64_t layer) {
  return (head_in_shard + layer * g.heads_per_shard) * kSlotsPerHead;
}
constexpr uint64_t RunsOffset(const Geometry& g) {
  return kControlHeadsOffset + uint64_t{g.heads_per_shard} * g.layers() * kControlHeadBytes;
}
constexpr uint64_t ControlBytes(const Geometry& geometry) {
  return AlignUp(RunsOffset(geometry) + geometry.runs_max() * sizeof(uint32_t), 4096);
}
// One Read confirms a miss, or a block: it takes the words from displacements to time.
inline constexpr uint64_t kMissReadingBytes = 5 * sizeof(uint64_t);

}  // namespace erda::format
