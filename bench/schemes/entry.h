// The contents of a scheme's NVM: log entries and destinations. They are the same for both schemes.
//
//   entry        0          8      12      16                          destination  0       4
//                +----------+------+-------+-----+-------+                          +-------+-----+-------+
//                | position | crc  | sizes | key | value |                          | sizes | key | value |
//                +----------+------+-------+-----+-------+                          +-------+-----+-------+
//
// Table 1 counts a key-value pair (N) and a CRC checksum (4 bytes) for an entry, and N for a destination. Real ones
// also hold their lengths, and an entry holds its place in the log: 12 bytes more, and 4.
//
// `position` is the number of bytes that the log ever gave out before this entry. The checksum covers it. So the entry
// that stood in this place one lap ago does not verify, nor does any mixture of it with the new entry.
// An entry of a delete is the paper's deleted metadata (Size(key) + 8), made safe against a crash. The key goes into
// the log. The word of the index (8 bytes) is cleared when the entry is applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "format/check.h"
#include "format/entry_word.h"

namespace erda::schemes {

inline constexpr uint32_t kKeyBytesMax = 1024;
inline constexpr uint32_t kValueBytesMax = (1U << 20) - 1;

//   bit 31     30      20 19        0
//   +--------+-----------+------------+
//   | delete | key size  | value size |
//   +--------+-----------+------------+
class PairSizes {
 public:
  constexpr PairSizes() = default;
  explicit constexpr PairSizes(uint32_t raw) : raw_(raw) {}
  static constexpr PairSizes OfPut(uint32_t key_size, uint32_t value_size) {
    return PairSizes(key_size << kKeyShift | value_size);
  }
  static constexpr PairSizes OfDelete(uint32_t key_size) { return PairSizes(kDeleteBit | key_size << kKeyShift); }

  [[nodiscard]] constexpr uint32_t raw() const { return raw_; }
  [[nodiscard]] constexpr bool deletes() const { return (raw_ & kDeleteBit) != 0; }
  [[nodiscard]] constexpr uint32_t key() const { return (raw_ & ~kDeleteBit) >> kKeyShift; }
  [[nodiscard]] constexpr uint32_t value() const { return raw_ & kValueBytesMax; }
  [[nodiscard]] constexpr uint64_t pair() const { return uint64_t{key()} + value(); }
  [[nodiscard]] constexpr bool valid() const {
    return key() >= 1 && key() <= kKeyBytesMax && (!deletes() || value() == 0);
  }
  constexpr bool operator==(const PairSizes&) const = default;

 private:
  static constexpr uint32_t kDeleteBit = 1U << 31;
  static constexpr int kKeyShift = 20;
  uint32_t raw_ = 0;
};

struct EntryHeader {
  uint64_t position;
  uint32_t crc;
  uint32_t sizes;
};
ERDA_FORMAT_SIZE(EntryHeader, 16);
ERDA_FORMAT_FIELD(EntryHeader, crc, 8);
ERDA_FORMAT_FIELD(EntryHeader, sizes, 12);

inline constexpr uint64_t kDestinationHeaderBytes = sizeof(uint32_t);
constexpr uint64_t EntryBytes(PairSizes sizes) { return sizeof(EntryHeader) + sizes.pair(); }
constexpr uint64_t DestinationBytes(PairSizes sizes) { return kDestinationHeaderBytes + sizes.pair(); }

// Entries and destinations begin at a cache line, so that none shares a line, and its write-back, with another.
inline constexpr uint64_t kGranule = kCacheLine;
constexpr uint64_t RoomFor(PairSizes sizes) { return AlignUp(DestinationBytes(sizes), kGranule); }

// Returns the checksum of a client's bytes: sizes, then key and value. `seed` is the pool's.
inline uint32_t PairCrc(uint32_t seed, PairSizes sizes, std::span<const std::byte> pair) {
  return Crc32c(Crc32c(seed, BytesOf(sizes.raw())), pair);
}
// Returns the same checksum, bound to a place in the log.
inline uint32_t EntryCrc(uint32_t pair_crc, uint64_t position) { return Crc32c(pair_crc, BytesOf(position)); }

// The 8-byte word of the index: the destination's offset and its room. One store moves a key to a larger destination.
//
//   bit 63           40 39              0
//   +-----------------+------------------+
//   | room, granules  | offset, granules |   0: the slot is free
//   +-----------------+------------------+
class DestinationWord {
 public:
  explicit constexpr DestinationWord(uint64_t raw) : raw_(raw) {}
  // REQUIRES: both are multiples of kGranule, and bytes is not 0.
  static constexpr DestinationWord Of(uint64_t offset, uint64_t bytes) {
    return DestinationWord(bytes / kGranule << kRoomShift | offset / kGranule);
  }
  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  [[nodiscard]] constexpr uint64_t offset() const { return (raw_ & ((uint64_t{1} << kRoomShift) - 1)) * kGranule; }
  [[nodiscard]] constexpr uint64_t bytes() const { return (raw_ >> kRoomShift) * kGranule; }
  [[nodiscard]] constexpr format::EntryWord as_entry_word() const { return format::EntryWord(raw_); }

 private:
  static constexpr int kRoomShift = 40;
  uint64_t raw_;
};

}  // namespace erda::schemes
