// One entry of a stream: a range of the pool, and the bytes that the shard flushed there.
//
//   byte 0          8      12     14      16
//   +--------------+------+------+-------+--------------+-----------------------------+
//   | offset       | size | kind | fence | `size` bytes | zeroes, to a multiple of 16 |
//   +--------------+------+------+-------+--------------+-----------------------------+
//
// offset: where the range begins in the pool.
// fence: 1: the shard fenced before it flushed the range. The streams of mirrored pools alone say so (docs/mirror.md).
// kBytes: the bytes are those of the range.
// kZeroes: the bytes are the length of the range, a number of 64 bits. All of the range is zero.
// kFiller: no range; its offset is 0. A buffer of the stream has one where no entry fits before the end of its area.
//
// The writer's functions belong to the shard's thread. The parser takes bytes that come from a disk and may be
// anything. All functions own nothing, and any thread may call them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "format/check.h"

namespace erda::journal {

enum class EntryKind : uint16_t { kBytes = 1, kZeroes = 2, kFiller = 3 };  // On disks: do not renumber.

struct EntryHeader {
  uint64_t offset;
  uint32_t size;
  EntryKind kind;
  uint16_t fence;
};
ERDA_FORMAT_SIZE(EntryHeader, 16);
ERDA_FORMAT_FIELD(EntryHeader, offset, 0);
ERDA_FORMAT_FIELD(EntryHeader, size, 8);
ERDA_FORMAT_FIELD(EntryHeader, kind, 12);
ERDA_FORMAT_FIELD(EntryHeader, fence, 14);

// Every entry begins at a multiple of this.
inline constexpr uint64_t kEntryAlignment = 16;
static_assert(sizeof(EntryHeader) == kEntryAlignment, "a filler can be a header alone");
// The most bytes of a range in one entry. A longer flush has several.
inline constexpr uint64_t kEntryBytesMax = 64 << 10;
// Returns how many bytes of a stream an entry takes that has `size` bytes after its header.
constexpr uint64_t EntrySpace(uint64_t size) { return sizeof(EntryHeader) + AlignUp(size, kEntryAlignment); }
inline constexpr uint64_t kZeroesSpace = EntrySpace(sizeof(uint64_t));
inline constexpr uint64_t kEntrySpaceMax = EntrySpace(kEntryBytesMax);

// Returns how many bytes of a flush belong into its first entry. Each entry but the last ends at a multiple of
// 64 KiB in the pool. So no aligned word of 8 bytes is torn between two entries: NVM never tears one.
constexpr uint64_t FirstPiece(uint64_t offset, uint64_t size) {
  return std::min(size, AlignDown(offset, kEntryBytesMax) + kEntryBytesMax - offset);
}

// Write one entry. `fenced`: a fence stands before it. REQUIRE: `to` has the entry's space. WriteBytes: 1 to
// kEntryBytesMax bytes. WriteFiller: `space` is a multiple of 16 from 16 on, and at most kEntrySpaceMax.
void WriteBytes(std::byte* to, uint64_t offset, std::span<const std::byte> bytes, bool fenced = false);
void WriteZeroes(std::byte* to, uint64_t offset, uint64_t size, bool fenced = false);
void WriteFiller(std::byte* to, uint64_t space);

struct Entry {
  EntryKind kind = EntryKind::kFiller;
  uint64_t offset = 0;
  uint64_t size = 0;                 // Of the range.
  std::span<const std::byte> bytes;  // Of kBytes.
  uint64_t space = 0;                // In the stream.
  bool fenced = false;               // A fence stands before it.
};

// Returns the entry at the beginning of the bytes. Returns nothing if it is not whole and well-formed, or if its range
// does not lie in a pool of this size.
[[nodiscard]] std::optional<Entry> ParseEntry(std::span<const std::byte> stream, uint64_t pool_size);

// Returns how many bytes, at most `most`, the entries at the beginning of the bytes have. 0: the first one is longer,
// or not there.
[[nodiscard]] uint64_t WholeEntries(std::span<const std::byte> stream, uint64_t most);

// Calls visit(const Entry&) for each entry but the fillers, in order. Stops at the first one that ParseEntry refuses,
// and returns false. Returns true if the entries fill the bytes exactly.
template <class Visit>
[[nodiscard]] bool ForEachEntry(std::span<const std::byte> stream, uint64_t pool_size, Visit&& visit) {
  while (!stream.empty()) {
    const std::optional<Entry> entry = ParseEntry(stream, pool_size);
    if (!entry) return false;
    if (entry->kind != EntryKind::kFiller) visit(*entry);
    stream = stream.subspan(entry->space);
  }
  return true;
}

}  // namespace erda::journal
