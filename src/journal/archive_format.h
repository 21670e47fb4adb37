// A file of an archive: a piece of one shard's stream, compressed (docs/journal.md, "An archive").
//
//   0        128                                                                    `file bytes`
//   +--------+---------------+------------------+---------------+------------------+- - - - -+
//   | header | frame header  | a zstd frame     | frame header  | a zstd frame     | ...     |
//   +--------+---------------+------------------+---------------+------------------+- - - - -+
//
//   byte 0        8         12    16     32       48      52       56      64    72      80      88     96 104
//   +------------+---------+-----+------+--------+-------+--------+-------+-----+-------+-------+------+------------+
//   | "ERDAARCH" | format  | crc | uuid | secret | shard | frames | first | end | epoch | first | last | file bytes |
//   |            | version |     |      |        |       |        | place |     |       | time  | time |            |
//   +------------+---------+-----+------+--------+-------+--------+-------+-----+-------+-------+------+------------+
//
//   A frame's header:
//   byte 0        8     12       16     24      28       32
//   +------------+-----+--------+------+-------+--------+
//   | "ERDAFRAM" | crc | pieces | from | bytes | packed |
//   +------------+-----+--------+------+-------+--------+
//
// header crc: CRC32C of the 128 bytes with the crc taken as 0. The bytes from 104 on are zero.
// frame crc: CRC32C of the frame's header with the crc taken as 0, and of its `packed` bytes.
//
// Unpacked, a frame has `pieces` ArchivePieces, and then `bytes` bytes of the stream from place `from` on. Each piece
// has whole entries (entry.h), and the time at which the server wrote its last bytes to the ring. A frame begins where
// the one before it ends. Times never go back.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "format/check.h"
#include "journal/identity.h"
#include "journal/place.h"
#include "journal/record.h"

namespace erda::journal {

inline constexpr uint64_t kArchiveMagic = 0x4843524141445245;  // "ERDAARCH"
inline constexpr uint64_t kFrameMagic = 0x4d41524641445245;    // "ERDAFRAM"
// A frame is written as soon as it has this many bytes of the stream. The last piece may bring one record more.
inline constexpr uint64_t kFrameBytes = kRecordBytesMax;
inline constexpr uint64_t kFrameBytesMax = kFrameBytes + kRecordBytesMax;
inline constexpr uint32_t kFramePiecesMax = 64 << 10;

struct ArchiveHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;
  Uuid uuid;  // The pool's.
  Secret secret;
  uint32_t shard;
  uint32_t frames;
  uint64_t first;
  uint64_t end;
  uint64_t epoch;  // Of all of its records.
  uint64_t first_us;
  uint64_t last_us;
  uint64_t file_bytes;
  std::array<uint64_t, 3> reserved;
};
ERDA_FORMAT_SIZE(ArchiveHeader, 128);
ERDA_FORMAT_FIELD(ArchiveHeader, magic, 0);
ERDA_FORMAT_FIELD(ArchiveHeader, format_version, 8);
ERDA_FORMAT_FIELD(ArchiveHeader, crc, 12);
ERDA_FORMAT_FIELD(ArchiveHeader, uuid, 16);
ERDA_FORMAT_FIELD(ArchiveHeader, secret, 32);
ERDA_FORMAT_FIELD(ArchiveHeader, shard, 48);
ERDA_FORMAT_FIELD(ArchiveHeader, frames, 52);
ERDA_FORMAT_FIELD(ArchiveHeader, first, 56);
ERDA_FORMAT_FIELD(ArchiveHeader, end, 64);
ERDA_FORMAT_FIELD(ArchiveHeader, epoch, 72);
ERDA_FORMAT_FIELD(ArchiveHeader, first_us, 80);
ERDA_FORMAT_FIELD(ArchiveHeader, last_us, 88);
ERDA_FORMAT_FIELD(ArchiveHeader, file_bytes, 96);

struct FrameHeader {
  uint64_t magic;
  uint32_t crc;
  uint32_t pieces;
  uint64_t from;
  uint32_t bytes;   // Of the stream.
  uint32_t packed;  // Bytes of the zstd frame that follows.
};
ERDA_FORMAT_SIZE(FrameHeader, 32);
ERDA_FORMAT_FIELD(FrameHeader, magic, 0);
ERDA_FORMAT_FIELD(FrameHeader, crc, 8);
ERDA_FORMAT_FIELD(FrameHeader, pieces, 12);
ERDA_FORMAT_FIELD(FrameHeader, from, 16);
ERDA_FORMAT_FIELD(FrameHeader, bytes, 24);
ERDA_FORMAT_FIELD(FrameHeader, packed, 28);

struct ArchivePiece {
  uint64_t bytes;
  uint64_t time_us;
};
ERDA_FORMAT_SIZE(ArchivePiece, 16);

inline uint32_t ArchiveHeaderCrc(ArchiveHeader header) {
  header.crc = 0;
  return Crc32c(0, BytesOf(header));
}
inline uint32_t FrameCrc(FrameHeader header, std::span<const std::byte> packed) {
  header.crc = 0;
  return Crc32c(Crc32c(0, BytesOf(header)), packed);
}

}  // namespace erda::journal
