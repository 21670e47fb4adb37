// The file of a journal: a header in two copies, then a ring for each shard.
//
//   0          4096       8192              + part bytes
//   +----------+----------+-----------------+-----------------+- - - - -+
//   | header A | header B | ring of shard 0 | ring of shard 1 | ...     |
//   +----------+----------+-----------------+-----------------+- - - - -+
//
//   byte 0        8         12    16     32       36  40           48       64       4096
//   +------------+---------+-----+------+--------+---+------------+--------+--------+
//   | "ERDAJRNL" | format  | crc | uuid | shards | 0 | part bytes | secret | zeroes |
//   |            | version |     |      |        |   |            |        |        |
//   +------------+---------+-----+------+--------+---+------------+--------+--------+
//
// crc: CRC32C of the 64 bytes with the crc taken as 0. Nothing writes to a header after the file was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "erda/status.h"
#include "format/check.h"
#include "journal/file_disk.h"
#include "journal/identity.h"
#include "journal/record_reader.h"

namespace erda::journal {

inline constexpr uint64_t kRingFileMagic = 0x4c4e524a41445245;  // "ERDAJRNL"

struct RingFileHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;
  Uuid uuid;  // The pool's.
  uint32_t shards;
  uint32_t reserved;
  uint64_t part_bytes;  // Of the ring of one shard, with its checkpoint blocks.
  Secret secret;
};
ERDA_FORMAT_SIZE(RingFileHeader, 64);
ERDA_FORMAT_FIELD(RingFileHeader, magic, 0);
ERDA_FORMAT_FIELD(RingFileHeader, format_version, 8);
ERDA_FORMAT_FIELD(RingFileHeader, crc, 12);
ERDA_FORMAT_FIELD(RingFileHeader, uuid, 16);
ERDA_FORMAT_FIELD(RingFileHeader, shards, 32);
ERDA_FORMAT_FIELD(RingFileHeader, part_bytes, 40);
ERDA_FORMAT_FIELD(RingFileHeader, secret, 48);

[[nodiscard]] uint32_t RingFileCrc(RingFileHeader header);
// Returns the valid header at the front of the disk. Returns errors as RingFile::Open does; `path` is for messages.
Result<RingFileHeader> FindRingFileHeader(Disk& disk, const std::string& path);
// Returns the part of a shard. REQUIRES: shard < header.shards.
[[nodiscard]] RingPart RingPartOf(const RingFileHeader& header, uint32_t shard);

// Owns the file. Any thread may use its disk, each for another shard.
class RingFile {
 public:
  // The least bytes for one shard's ring. The longest record and its successor have room there.
  static constexpr uint64_t kPartBytesMin = 4 << 20;

  // Makes a file of at most `size` bytes with empty rings, for a pool of that many shards. The file is complete after a
  // power cut, or Open refuses it. Removes the file after an error. Returns kInvalidArgument if the size is too small,
  // or as FileDisk::Create does. REQUIRES: shards > 0.
  static Result<RingFile> Create(const std::string& path, const Uuid& uuid, uint32_t shards, uint64_t size,
                                 FileDiskOptions options = {});
  // Returns kCorruption if the file is no journal, damaged or cut short. Returns kInvalidArgument if it belongs to
  // another pool, number of shards or format version. Returns other errors as FileDisk::Open does.
  static Result<RingFile> Open(const std::string& path, const Uuid& uuid, uint32_t shards,
                               FileDiskOptions options = {});

  [[nodiscard]] Disk& disk() const { return *disk_; }
  // REQUIRES: shard < shards.
  [[nodiscard]] RingPart part(uint32_t shard) const { return RingPartOf(header_, shard); }
  [[nodiscard]] RingIdentity identity(uint32_t shard) const { return {header_.uuid, header_.secret, shard}; }
  // Those of all shards.
  [[nodiscard]] std::vector<RingIdentity> identities() const;
  [[nodiscard]] const RingFileHeader& header() const { return header_; }

 private:
  RingFile(std::unique_ptr<FileDisk> disk, const RingFileHeader& header);
  Status Format() const;

  std::unique_ptr<FileDisk> disk_;
  RingFileHeader header_;
};

}  // namespace erda::journal
