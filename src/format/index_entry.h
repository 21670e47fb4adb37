// An index slot. Its entry tells where a key's newest version is.
//
//   byte 0                 8                                        16
//   +---------------------+---------------------------------------+
//   | entry word          | meta                                  |
//   +---------------------+---------------------------------------+
//
//   meta:  bit 63     32 31   24 23       16 15           0
//          +------------+-------+-----------+-------------+
//          | key tag    | depth | distance  | size hint   |
//          +------------+-------+-----------+-------------+
//
// key tag: the low 32 bits of the key's hash. Shard, head and block follow from them.
//
// depth: the number of low bits of the hash that chose the block when the entry came there. If the entry left the slot
// by a split, the depth is that of the block to which it went. That is a hint for clients that do not know of the split
// yet (index_layout.h).
//
// distance: slots from the key's home. 255: the entry is in none of the 64 slots from there, and is never displaced
// (reach.h).
//
// size hint: granules of the newest object, so that a reader fetches it in one Read; 0xffff means that many or more. It
// is a hint only: word and meta are two stores, and a reader may see one of them earlier than the other.
//
// The index slot is free if its word is empty. Meta says nothing then.
#pragma once

#include <algorithm>
#include <cstdint>

#include "format/check.h"
#include "format/entry_word.h"

namespace erda::format {

// A key's entry is in one of these 64 slots from its home on. If the index cannot free one of them, the entry is
// elsewhere in its window (reach.h). With 64 an index of any size takes keys up to a load of 0.85 and more. With 32 an
// index of millions of slots refuses at 0.80 (docs/design.md, "The index").
inline constexpr uint32_t kNeighbourhood = 64;
// Nearly all entries are in the first 32 of these slots. So a get looks there first, and at the rest when it confirms a
// miss.
inline constexpr uint32_t kFirstLook = 32;

class EntryMeta {
 public:
  static constexpr uint32_t kSizeHintMax = 0xffff;
  static constexpr uint32_t kFar = 0xff;  // The distance of an entry outside of its key's neighbourhood.

  constexpr EntryMeta() = default;
  explicit constexpr EntryMeta(uint64_t raw) : raw_(raw) {}
  static constexpr EntryMeta Make(uint32_t tag, uint32_t depth, uint32_t distance, uint64_t object_bytes) {
    return EntryMeta((uint64_t{tag} << 32) | (uint64_t{depth & 0xff} << 24) | (uint64_t{distance & 0xff} << 16) |
                     SizeHintOf(object_bytes));
  }
  static constexpr uint32_t TagOf(uint64_t key_hash) { return static_cast<uint32_t>(key_hash); }

  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  [[nodiscard]] constexpr uint32_t tag() const { return static_cast<uint32_t>(raw_ >> 32); }
  [[nodiscard]] constexpr uint32_t depth() const { return static_cast<uint32_t>(raw_ >> 24) & 0xff; }
  [[nodiscard]] constexpr uint32_t distance() const { return static_cast<uint32_t>(raw_ >> 16) & 0xff; }
  [[nodiscard]] constexpr uint64_t size_hint_bytes() const { return (raw_ & kSizeHintMax) * kGranuleBytes; }
  [[nodiscard]] constexpr bool may_be_larger() const { return (raw_ & kSizeHintMax) == kSizeHintMax; }
  [[nodiscard]] constexpr EntryMeta WithSizeHint(uint64_t object_bytes) const {
    return EntryMeta((raw_ & ~uint64_t{kSizeHintMax}) | SizeHintOf(object_bytes));
  }
  [[nodiscard]] constexpr EntryMeta WithTag(uint32_t tag) const {
    return EntryMeta((raw_ & UINT32_MAX) | uint64_t{tag} << 32);
  }
  [[nodiscard]] constexpr EntryMeta WithDistance(uint32_t distance) const {
    return EntryMeta((raw_ & ~(uint64_t{0xff} << 16)) | (uint64_t{distance & 0xff} << 16));
  }
  [[nodiscard]] constexpr EntryMeta WithDepth(uint32_t depth) const {
    return EntryMeta((raw_ & ~(uint64_t{0xff} << 24)) | (uint64_t{depth & 0xff} << 24));
  }
  constexpr bool operator==(const EntryMeta&) const = default;

 private:
  static constexpr uint64_t SizeHintOf(uint64_t object_bytes) {
    return std::min<uint64_t>((object_bytes + kGranuleBytes - 1) / kGranuleBytes, kSizeHintMax);
  }

  uint64_t raw_ = 0;
};

struct IndexEntry {
  uint64_t word;
  uint64_t meta;

  [[nodiscard]] constexpr EntryWord entry_word() const { return EntryWord(word); }
  [[nodiscard]] constexpr EntryMeta entry_meta() const { return EntryMeta(meta); }
};
ERDA_FORMAT_SIZE(IndexEntry, 16);
ERDA_FORMAT_FIELD(IndexEntry, word, 0);
ERDA_FORMAT_FIELD(IndexEntry, meta, 8);
// Returns whether these are one entry in two slots, `slots` apart. A crash in the middle of a move leaves it so. Both
// then have the same word, tag and home. Equal words alone prove nothing: they can be of two heads.
[[nodiscard]] constexpr bool IsMovedCopy(const IndexEntry& from, const IndexEntry& to, uint64_t slots) {
  const EntryMeta one = from.entry_meta();
  const EntryMeta other = to.entry_meta();
  return from.word == to.word && one.tag() == other.tag() && one.distance() + slots == other.distance() &&
         other.distance() < kNeighbourhood;
}
inline constexpr uint64_t kFirstLookBytes = kFirstLook * sizeof(IndexEntry);
inline constexpr uint64_t kNeighbourhoodBytes = kNeighbourhood * sizeof(IndexEntry);
static_assert(kNeighbourhood <= EntryMeta::kFar, "distance has 8 bits");

}  // namespace erda::format
