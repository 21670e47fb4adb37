// A base copy: the pool file of a pool with a journal, copied while its server may run (docs/journal.md, "An archive").
//
//   0        `header bytes`                + pool size
//   +--------+-----------------------------+
//   | header | the bytes of the pool file  |
//   +--------+-----------------------------+
//
//   byte 0        8         12    16     32       40      44     48          56     64       72       80       96
//   +------------+---------+-----+------+--------+-------+------+-----------+------+--------+--------+--------+-------+
//   | "ERDABASE" | format  | crc | uuid | header | pool  |shards| pool size | time | time   | 0      | secret | ends  |
//   |            | version |     |      | bytes  | crc   |      |           | begun| ended  |        |        | (16)  |
//   +------------+---------+-----+------+--------+-------+------+-----------+------+--------+--------+--------+-------+
//
// ends: two places for each shard. The copy has all of the stream before the first, and may have anything before the
// second. So the stream between them has to be applied to it.
// crc: CRC32C of the header, up to `header bytes`, with the crc taken as 0. pool crc: CRC32C of the pool's bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "erda/status.h"
#include "format/check.h"
#include "journal/identity.h"
#include "journal/place.h"

namespace erda::journal {

inline constexpr uint64_t kBaseMagic = 0x4553414241445245;  // "ERDABASE"

struct BaseHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;
  Uuid uuid;  // The pool's.
  uint64_t header_bytes;
  uint32_t pool_crc;
  uint32_t shards;
  uint64_t pool_size;
  uint64_t begun_us;  // The server's time, in microseconds.
  uint64_t ended_us;
  uint64_t reserved;
  Secret secret;  // The journal's.
};
ERDA_FORMAT_SIZE(BaseHeader, 96);
ERDA_FORMAT_FIELD(BaseHeader, magic, 0);
ERDA_FORMAT_FIELD(BaseHeader, format_version, 8);
ERDA_FORMAT_FIELD(BaseHeader, crc, 12);
ERDA_FORMAT_FIELD(BaseHeader, uuid, 16);
ERDA_FORMAT_FIELD(BaseHeader, header_bytes, 32);
ERDA_FORMAT_FIELD(BaseHeader, pool_crc, 40);
ERDA_FORMAT_FIELD(BaseHeader, shards, 44);
ERDA_FORMAT_FIELD(BaseHeader, pool_size, 48);
ERDA_FORMAT_FIELD(BaseHeader, begun_us, 56);
ERDA_FORMAT_FIELD(BaseHeader, ended_us, 64);
ERDA_FORMAT_FIELD(BaseHeader, secret, 80);

struct BaseEnds {
  uint64_t from;  // The archive is needed from here,
  uint64_t end;   // and at least up to here.
};
ERDA_FORMAT_SIZE(BaseEnds, 16);

struct BaseInfo {
  BaseHeader header;
  std::vector<BaseEnds> ends;  // Of each shard.
};

// Makes a base copy of a pool, whether a server has it open or not. Returns kConflict if `to` exists, kInvalidArgument
// if the pool has no journal, or another one, and other errors of the files. Leaves no file after an error.
Result<BaseInfo> MakeBaseCopy(const std::string& pool, const std::string& journal, const std::string& to);

// Owns the open file of a base copy.
class BaseCopy {
 public:
  // Reads the header. Returns kCorruption if the file is no base copy, damaged or cut short.
  static Result<BaseCopy> Open(const std::string& path);

  [[nodiscard]] const BaseHeader& header() const { return info_.header; }
  [[nodiscard]] const std::vector<BaseEnds>& ends() const { return info_.ends; }
  // Writes the pool's bytes to a file, which has nothing but zeroes. Returns kCorruption if they are damaged.
  [[nodiscard]] Status CopyTo(int fd, const std::string& name) const;

 private:
  BaseCopy(std::string path, UniqueFd fd, BaseInfo info);

  std::string path_;
  UniqueFd fd_;
  BaseInfo info_;
};

}  // namespace erda::journal
