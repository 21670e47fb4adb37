// The parts of the log that are not objects: the region table, segment headers, tombstone slots.
//
// A region table entry is one word, changed by one atomic store:
//
//   bit 63        32 31    24 23   16 15    8 7      0    state: 0 free, 0xa5 linked to (head, slot), 0xc3 the same
//   +---------------+--------+-------+-------+--------+           and settled, 0x5a emptied, 0x3c a run of the index,
//   | generation    | check  | slot  | head  | state  |           which one instead of slot and head
//   +---------------+--------+-------+-------+--------+    check: the other seven bytes, in exclusive or
//
// Slot is the head slot, and has 7 bits. For a head slot in a layer of its head (geometry.h), head is the head's number
// plus the layer times the number of heads.
//
// A settled region is linked. All of its segments are full and settled, and its tombstone slot has no delete in it. So
// a restart reads nothing there.
//
// An emptied region is in no head any more, and no entry leads there. The cleaner is filling it with zeroes; then it is
// free. Each time a region is linked it gets a generation that no region of the shard had before. A segment's header
// counts only if it names the generation of its region, and an object verifies only with it. So bytes of an earlier use
// are never taken for those of this use.
//
//   segment 0 of a region                                      each other segment
//   0          64               1152                           0          64
//   +----------+----------------+--------------- ... -+        +----------+---------- ... -+
//   | header   | tombstone slot | objects ...         |        | header   | objects ...    |
//   +----------+----------------+--------------- ... -+        +----------+---------- ... -+
//
// Objects stand one after the other, without gaps. Their versions grow, except for copies. The objects end at the first
// place without a header of this segment (WalkObjects). A walk may begin at the mark: each version before it is
// settled, or dead. The tombstone slot holds the tombstone of the delete that runs now (docs/protocol.md, "Delete").
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "format/check.h"
#include "format/geometry.h"
#include "format/object.h"

namespace erda::format {

class RegionWord {
 public:
  constexpr RegionWord() = default;
  explicit constexpr RegionWord(uint64_t raw) : raw_(raw) {}
  static constexpr RegionWord Linked(uint32_t generation, uint32_t head, uint32_t slot) {
    return Checked((uint64_t{generation} << 32) | (uint64_t{slot & 0xff} << 16) | (uint64_t{head & 0xff} << 8) |
                   kLinked);
  }
  // Links to a head slot in any layer. REQUIRES: slot < slots_per_head.
  static constexpr RegionWord Linked(const Geometry& g, uint32_t generation, uint32_t head, uint32_t slot) {
    return Linked(generation, head + slot / kSlotsPerHead * g.heads(), slot % kSlotsPerHead);
  }
  // REQUIRES: linked.
  [[nodiscard]] constexpr RegionWord Settled() const { return Checked((raw_ & ~kStateAndCheck) | kSettled); }
  static constexpr RegionWord Free(uint32_t generation) { return Checked(uint64_t{generation} << 32); }
  static constexpr RegionWord Emptied(uint32_t generation) { return Checked((uint64_t{generation} << 32) | kEmptied); }
  static constexpr RegionWord OfIndex(uint32_t generation, uint32_t run) {
    return Checked((uint64_t{generation} << 32) | (uint64_t{run & 0xffff} << 8) | kOfIndex);
  }

  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  // Judges by the state alone, which may be damaged.
  [[nodiscard]] constexpr bool linked() const { return (raw_ & 0xff) == kLinked || settled(); }
  [[nodiscard]] constexpr bool settled() const { return (raw_ & 0xff) == kSettled; }
  // Returns whether the region is linked, and no bit of the word is damaged.
  [[nodiscard]] constexpr bool IsWholeLink() const {
    const RegionWord whole = Linked(generation(), head(), slot());
    return *this == whole || *this == whole.Settled();
  }
  [[nodiscard]] constexpr uint32_t run() const { return static_cast<uint32_t>(raw_ >> 8) & 0xffff; }
  [[nodiscard]] constexpr uint32_t head() const { return static_cast<uint32_t>(raw_ >> 8) & 0xff; }
  [[nodiscard]] constexpr uint32_t slot() const { return static_cast<uint32_t>(raw_ >> 16) & 0xff; }
  [[nodiscard]] constexpr uint32_t HeadIn(const Geometry& g) const { return head() % g.heads(); }
  // Returns the head slot through all layers. In a damaged word it may be slots_per_head, or larger.
  [[nodiscard]] constexpr uint32_t SlotIn(const Geometry& g) const {
    return slot() < kSlotsPerHead ? head() / g.heads() * kSlotsPerHead + slot() : UINT32_MAX;
  }
  [[nodiscard]] constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_ >> 32); }
  constexpr bool operator==(const RegionWord&) const = default;

 private:
  static constexpr uint64_t kLinked = 0xa5;
  static constexpr uint64_t kSettled = 0xc3;
  static constexpr uint64_t kEmptied = 0x5a;
  static constexpr uint64_t kOfIndex = 0x3c;
  static constexpr uint64_t kStateAndCheck = 0xff0000ff;
  static constexpr RegionWord Checked(uint64_t raw) {
    uint64_t check = 0;
    for (int bit = 0; bit < 64; bit += 8) check ^= (raw >> bit) & 0xff;
    return RegionWord(raw | check << 24);
  }

  uint64_t raw_ = 0;
};

// On NVM: do not renumber. Many bits differ between two of these words, so flipped bits do not make one of another.
enum class SegmentState : uint64_t {
  kOpen = 0x6e65706f'6e65706f,     // "openopen". The log may append more objects.
  kSealed = 0x6c616573'6c616573,   // "sealseal". Full, and some reservations in it may be in flight.
  kSettled = 0x656e6f64'656e6f64,  // "donedone". Full, and every reservation in it is settled or dead.
  kCopies = 0x79706f63'79706f63,   // "copycopy". The cleaner copies settled objects there, of any versions.
  kCopied = 0x656e6f64'79706f63,   // "copydone". Full of such copies.
};

struct SegmentHeader {
  uint64_t identity;       // Identity(generation). The shard writes it last, so it vouches for the other fields.
  uint64_t state;          // A SegmentState.
  uint64_t first_version;  // Older versions here are of an earlier use of the region. 0 in a segment with copies.
  uint64_t end;            // The end of the objects. The shard writes it before it seals the segment.
  uint64_t mark;           // Mark(offset): no version before the offset is in flight. Any other word says nothing.
  uint64_t reserved[3];

  [[nodiscard]] constexpr bool Is(SegmentState other) const { return state == static_cast<uint64_t>(other); }
  // Returns whether only the cleaner wrote here. No version in the segment was ever in flight. The state alone decides,
  // since flipped bits do not make one state of another.
  [[nodiscard]] constexpr bool copies() const { return Is(SegmentState::kCopies) || Is(SegmentState::kCopied); }
  // Returns whether the segment is full, and nothing in it is in flight.
  [[nodiscard]] constexpr bool settled() const { return Is(SegmentState::kSettled) || Is(SegmentState::kCopied); }
  // Returns the oldest version that counts here.
  [[nodiscard]] constexpr uint64_t oldest_version() const { return copies() ? 0 : first_version; }

  static constexpr uint64_t Identity(uint32_t generation) {
    return (uint64_t{0x47455345 ^ generation} << 32) | generation;
  }
  // Returns whether the segment was not opened yet in this use of its region: the place has no header, or one of an
  // earlier use.
  [[nodiscard]] constexpr bool NotYet(uint32_t generation) const {
    const auto earlier = static_cast<uint32_t>(identity);
    return identity == 0 || (earlier < generation && identity == Identity(earlier));
  }
  // Returns whether the header is of a later use of the region.
  [[nodiscard]] constexpr bool OpenedAfter(uint32_t generation) const {
    const auto opened = static_cast<uint32_t>(identity);
    return opened > generation && identity == Identity(opened);
  }

  // The product makes sure that no two flipped bits make one mark of another.
  static constexpr uint64_t Mark(uint64_t offset) {
    return (((offset / kGranuleBytes * 0x9e3779b1) ^ 0x4b52414d) << 32) | offset;
  }
  // Returns the offset of the mark, where an object begins or the objects end. Returns nullopt if the mark says
  // nothing.
  [[nodiscard]] constexpr std::optional<uint64_t> Marked(uint64_t segment_size) const {
    const uint64_t offset = mark & UINT32_MAX;
    const bool good = mark == Mark(offset) && offset <= segment_size && offset % kGranuleBytes == 0;
    return good ? std::optional(offset) : std::nullopt;
  }
};
ERDA_FORMAT_SIZE(SegmentHeader, 64);
ERDA_FORMAT_FIELD(SegmentHeader, identity, 0);
ERDA_FORMAT_FIELD(SegmentHeader, state, 8);
ERDA_FORMAT_FIELD(SegmentHeader, first_version, 16);
ERDA_FORMAT_FIELD(SegmentHeader, end, 24);
ERDA_FORMAT_FIELD(SegmentHeader, mark, 32);

enum class SegmentUse : uint8_t { kOpened, kNotYet, kDamaged };
// Returns whether the segment was opened in this use of its region. REQUIRES: the bytes are at least the header.
[[nodiscard]] SegmentUse UseOfSegment(std::span<const std::byte> segment, uint32_t generation);
// A bad block of the medium that was mended has zeroes. It is at most half as long as this.
inline constexpr uint64_t kMendedBytesMax = 8192;

inline constexpr uint64_t kTombstoneSlotOffset = sizeof(SegmentHeader);
inline constexpr uint64_t kTombstoneSlotBytes = 1088;
static_assert(kTombstoneSlotBytes >= ObjectSpace(kKeyBytesMax, 0));
static_assert(kTombstoneSlotOffset % kGranuleBytes == 0 && kTombstoneSlotBytes % kGranuleBytes == 0);

// Returns the offset in a segment at which its objects begin.
constexpr uint64_t FirstObjectOffset(uint64_t segment) {
  return segment == 0 ? kTombstoneSlotOffset + kTombstoneSlotBytes : sizeof(SegmentHeader);
}

}  // namespace erda::format
