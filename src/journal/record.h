// A record: a piece of a shard's stream as the ring has it, with a header and a checksum.
//
//   byte 0        8         12    16     32      36      40      48      56     64     72       88
//   +------------+---------+-----+------+-------+-------+-------+-------+------+------+--------+-----------+- - - - -+
//   | "ERDARCRD" | format  | crc | uuid | shard | bytes | epoch | place | held | time | secret | bytes ... | zeroes  |
//   |            | version |     |      |       |       |       |       |      |      |        |           |         |
//   +------------+---------+-----+------+-------+-------+-------+-------+------+------+--------+-----------+- - - - -+
//
// crc: CRC32C of the header with the crc taken as 0, and of the bytes of the stream. It does not cover the zeroes,
// which fill the record's last block.
//
// Owns nothing. Any thread may call these functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "format/check.h"
#include "journal/disk.h"
#include "journal/identity.h"
#include "journal/place.h"

namespace erda::journal {

inline constexpr uint64_t kRecordMagic = 0x4452435241445245;  // "ERDARCRD"
// The most bytes of the stream in one record.
inline constexpr uint64_t kRecordBytesMax = 1 << 20;

struct RecordHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;
  Uuid uuid;
  uint32_t shard;
  uint32_t bytes;  // Of the stream, in this record.
  uint64_t epoch;
  uint64_t place;    // The place of the first byte.
  uint64_t held;     // The stream was held up to there when the record was written. So no later stream ends before it.
  uint64_t time_us;  // The server's time when it wrote the record, in microseconds.
  Secret secret;
};
ERDA_FORMAT_SIZE(RecordHeader, 88);
ERDA_FORMAT_FIELD(RecordHeader, magic, 0);
ERDA_FORMAT_FIELD(RecordHeader, format_version, 8);
ERDA_FORMAT_FIELD(RecordHeader, crc, 12);
ERDA_FORMAT_FIELD(RecordHeader, uuid, 16);
ERDA_FORMAT_FIELD(RecordHeader, shard, 32);
ERDA_FORMAT_FIELD(RecordHeader, bytes, 36);
ERDA_FORMAT_FIELD(RecordHeader, epoch, 40);
ERDA_FORMAT_FIELD(RecordHeader, place, 48);
ERDA_FORMAT_FIELD(RecordHeader, held, 56);
ERDA_FORMAT_FIELD(RecordHeader, time_us, 64);
ERDA_FORMAT_FIELD(RecordHeader, secret, 72);

// Returns the blocks that a record with `bytes` bytes of the stream takes.
constexpr uint64_t RecordBlocks(uint64_t bytes) {
  return AlignUp(sizeof(RecordHeader) + bytes, Disk::kBlock) / Disk::kBlock;
}
// Returns the bytes of the stream that fit into a record of `blocks` blocks. REQUIRES: blocks > 0.
constexpr uint64_t RecordRoom(uint64_t blocks) {
  const uint64_t room = blocks * Disk::kBlock - sizeof(RecordHeader);
  return room < kRecordBytesMax ? room : kRecordBytesMax;
}
inline constexpr uint64_t kRecordBlocksMax = RecordBlocks(kRecordBytesMax);

struct Record {
  Place from;
  Place held;
  uint64_t epoch;
  uint64_t time_us;
  std::span<const std::byte> bytes;

  [[nodiscard]] Place end() const { return from + bytes.size(); }
};

using Parts = std::span<const std::span<const std::byte>>;
// Lays the record out in `to`, and returns all of its blocks there. Its bytes are the parts, one after the other;
// `record.bytes` is ignored. REQUIRES: the parts have 1 to kRecordBytesMax bytes, and `to` has room for the record.
std::span<const std::byte> EncodeRecord(const RingIdentity& identity, const Record& record, Parts parts,
                                        std::span<std::byte> to);

// The reader knows this about the next record before it looks.
struct Expected {
  Place place;
  uint64_t epoch_min;  // That of the record before.
  uint64_t epoch_max;  // The last one that has begun.
};
// Returns the blocks of the record whose header is at the front of these bytes. Returns nothing if it is not the
// expected one. The checksum is not verified. REQUIRES: bytes has a whole block.
std::optional<uint64_t> ExpectedBlocks(std::span<const std::byte> bytes, const RingIdentity& identity,
                                       const Expected& expected);
// Returns the record at the front of these bytes if it is the expected one, and whole. REQUIRES: bytes has a whole
// block.
std::optional<Record> ReadRecord(std::span<const std::byte> bytes, const RingIdentity& identity,
                                 const Expected& expected);

}  // namespace erda::journal
