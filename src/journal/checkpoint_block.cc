#include "journal/checkpoint_block.h"

#include <cstring>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "journal/disk.h"
#include "journal/ring_space.h"

namespace erda::journal {

namespace {

uint32_t CheckpointCrc(CheckpointBlock checkpoint) {
  checkpoint.crc = 0;
  return Crc32c(0, BytesOf(checkpoint));
}

// No place, epoch or generation gets so far: at 10 GB/s a stream takes 29 years. Larger ones would wrap around.
constexpr uint64_t kNumbersEnd = uint64_t{1} << 63;

bool IsCheckpointOf(const CheckpointBlock& checkpoint, const RingIdentity& identity, uint64_t blocks) {
  return checkpoint.magic == kCheckpointMagic && checkpoint.format_version == kFormatVersion &&
         checkpoint.crc == CheckpointCrc(checkpoint) && checkpoint.uuid == identity.uuid &&
         checkpoint.secret == identity.secret && checkpoint.shard == identity.shard && checkpoint.place < kNumbersEnd &&
         checkpoint.epoch < kNumbersEnd && checkpoint.generation < kNumbersEnd &&
         checkpoint.place_epoch <= checkpoint.epoch && checkpoint.first_block >= kFirstRecordBlock &&
         checkpoint.first_block < blocks;
}

}  // namespace

CheckpointBlock FirstCheckpoint(const RingIdentity& identity) {
  CheckpointBlock first{};
  first.magic = kCheckpointMagic;
  first.format_version = kFormatVersion;
  first.uuid = identity.uuid;
  first.shard = identity.shard;
  first.generation = 1;
  first.epoch = 1;
  first.place_epoch = 1;
  first.first_block = kFirstRecordBlock;
  first.secret = identity.secret;
  return first;
}

void EncodeCheckpoint(CheckpointBlock checkpoint, std::span<std::byte> block) {
  checkpoint.crc = CheckpointCrc(checkpoint);
  std::memset(block.data(), 0, Disk::kBlock);
  std::memcpy(block.data(), &checkpoint, sizeof(checkpoint));
}

std::optional<CheckpointBlock> FindCheckpoint(std::span<const std::byte> copies, const RingIdentity& identity,
                                              uint64_t blocks) {
  std::optional<CheckpointBlock> best;
  for (uint64_t copy = 0; copy < kFirstRecordBlock; ++copy) {
    const auto checkpoint = LoadAs<CheckpointBlock>(copies.subspan(copy * Disk::kBlock));
    if (!IsCheckpointOf(checkpoint, identity, blocks)) continue;
    if (!best || checkpoint.generation > best->generation) best = checkpoint;
  }
  return best;
}

}  // namespace erda::journal
