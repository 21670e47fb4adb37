// The first page of the file with the streams of an image. It names the pool of the image, and says whether the image
// is complete.
//
//   byte 0        8         12    16     32     48          56         64       68   72      80     4096
//   +------------+---------+-----+------+------+-----------+----------+--------+----+-------+------+---------------+
//   | "ERDAIMAG" | version | crc | uuid | boot | pool size | capacity | shards | 0  | state | 0    | the streams   |
//   +------------+---------+-----+------+------+-----------+----------+--------+----+-------+------+---------------+
//
// crc: CRC32C of the 72 bytes before the state, with the crc taken as 0.
// uuid: that of the pool. boot: the boot id of the machine when the image was made.
// capacity: that of each shard's stream (stream.h). The streams follow one after the other, each with its header page.
//
// state: kFilling until the image has all of the pool and its streams. Before that it counts as no image. A file that
// was being made when its server was killed may also be empty, or begin with zeroes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "erda/status.h"
#include "format/check.h"
#include "format/superblock.h"
#include "journal/stream.h"

namespace erda::journal {

inline constexpr uint64_t kImageMagic = 0x47414d4941445245;  // "ERDAIMAG"
inline constexpr uint32_t kImageVersion = 1;
inline constexpr uint64_t kImageHeaderBytes = 4096;

enum class ImageState : uint64_t { kFilling = 1, kReady = 2 };

struct ImageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  Uuid uuid;
  format::BootId boot;
  uint64_t pool_size;
  uint64_t stream_capacity;
  uint32_t shards;
  uint32_t reserved;
  uint64_t state;
};
ERDA_FORMAT_SIZE(ImageHeader, 80);
ERDA_FORMAT_FIELD(ImageHeader, magic, 0);
ERDA_FORMAT_FIELD(ImageHeader, version, 8);
ERDA_FORMAT_FIELD(ImageHeader, crc, 12);
ERDA_FORMAT_FIELD(ImageHeader, uuid, 16);
ERDA_FORMAT_FIELD(ImageHeader, boot, 32);
ERDA_FORMAT_FIELD(ImageHeader, pool_size, 48);
ERDA_FORMAT_FIELD(ImageHeader, stream_capacity, 56);
ERDA_FORMAT_FIELD(ImageHeader, shards, 64);
ERDA_FORMAT_FIELD(ImageHeader, state, 72);

[[nodiscard]] uint32_t ImageHeaderCrc(const ImageHeader& header);

// Reads the header of the file `path`. Returns nothing if the file was being made when its server was killed. Returns
// kInvalidArgument for another version, and kCorruption for a file that is no image. Any thread may call it.
Result<std::optional<ImageHeader>> ReadImageHeader(int fd, const std::string& path);
// Any thread. REQUIRES: the caller has the image locked.
Status WriteImageHeader(int fd, const std::string& path, const ImageHeader& header);

}  // namespace erda::journal
