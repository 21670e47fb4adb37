// The checkpoint block of a ring: where its live part begins. It has two copies. The valid copy with the higher
// generation counts. The next write goes to the other copy, so a torn write leaves one valid copy.
//
//   byte 0        8         12    16     32      36      40           48      56      64      72      80       96
//   +------------+---------+-----+------+-------+-------+------------+-------+-------+-------+-------+--------+--------+
//   | "ERDACKPT" | format  | crc | uuid | shard | has   | generation | epoch | place | place | first | secret | zeroes
//   | |            | version |     |      |       | front |            |       |       | epoch | block |        | |
//   +------------+---------+-----+------+-------+-------+------------+-------+-------+-------+-------+--------+--------+
//
// crc: CRC32C of the 96 bytes with the crc taken as 0.
//
// Owns nothing. Any thread may call these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "format/check.h"
#include "journal/identity.h"
#include "journal/place.h"

namespace erda::journal {

inline constexpr uint64_t kCheckpointMagic = 0x54504b4341445245;  // "ERDACKPT"

struct CheckpointBlock {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;
  Uuid uuid;
  uint32_t shard;
  uint32_t has_front;  // 1: a front may have bytes of the stream that the ring lacks.
  uint64_t generation;
  uint64_t epoch;        // The last epoch that has begun. It never begins again.
  uint64_t place;        // The checkpoint. The ring has the stream from here on.
  uint64_t place_epoch;  // Of the record that ended at the checkpoint. Older records are no part of the stream.
  uint64_t first_block;  // Where the record at the checkpoint stands or will stand, in blocks of the shard's part.
  Secret secret;
};
ERDA_FORMAT_SIZE(CheckpointBlock, 96);
ERDA_FORMAT_FIELD(CheckpointBlock, magic, 0);
ERDA_FORMAT_FIELD(CheckpointBlock, format_version, 8);
ERDA_FORMAT_FIELD(CheckpointBlock, crc, 12);
ERDA_FORMAT_FIELD(CheckpointBlock, uuid, 16);
ERDA_FORMAT_FIELD(CheckpointBlock, shard, 32);
ERDA_FORMAT_FIELD(CheckpointBlock, has_front, 36);
ERDA_FORMAT_FIELD(CheckpointBlock, generation, 40);
ERDA_FORMAT_FIELD(CheckpointBlock, epoch, 48);
ERDA_FORMAT_FIELD(CheckpointBlock, place, 56);
ERDA_FORMAT_FIELD(CheckpointBlock, place_epoch, 64);
ERDA_FORMAT_FIELD(CheckpointBlock, first_block, 72);
ERDA_FORMAT_FIELD(CheckpointBlock, secret, 80);

// Returns the first checkpoint block of a ring: of epoch 1, at place 0.
CheckpointBlock FirstCheckpoint(const RingIdentity& identity);
// Writes the block with its crc to the front of a block of the disk, followed by zeroes.
void EncodeCheckpoint(CheckpointBlock checkpoint, std::span<std::byte> block);
// Returns the copy that counts. Returns nothing if neither is a checkpoint block of this ring. REQUIRES: `copies` has
// both blocks, and `blocks` is the number of blocks of the shard's part.
std::optional<CheckpointBlock> FindCheckpoint(std::span<const std::byte> copies, const RingIdentity& identity,
                                              uint64_t blocks);

// Returns what is wrong with each copy, for a message.
std::string CheckpointFaults(std::span<const std::byte> copies, const RingIdentity& identity, uint64_t blocks);

}  // namespace erda::journal
