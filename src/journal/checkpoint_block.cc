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

// Returns what is wrong with the copy as a checkpoint block of this ring, or null.
const char* FaultOf(std::span<const std::byte> copy, const RingIdentity& identity, uint64_t blocks) {
  const auto checkpoint = LoadAs<CheckpointBlock>(copy);
  if (IsZero(copy)) return "only zeroes";
  if (checkpoint.magic != kCheckpointMagic) return "wrong magic number";
  if (checkpoint.format_version != kFormatVersion) return "wrong format version";
  if (checkpoint.crc != CheckpointCrc(checkpoint)) return "wrong checksum";
  const bool ours = checkpoint.uuid == identity.uuid && checkpoint.secret == identity.secret;
  if (!ours || checkpoint.shard != identity.shard) return "of another ring";
  const bool possible = checkpoint.place < kNumbersEnd && checkpoint.epoch < kNumbersEnd &&
                        checkpoint.generation < kNumbersEnd && checkpoint.place_epoch <= checkpoint.epoch &&
                        checkpoint.first_block >= kFirstRecordBlock && checkpoint.first_block < blocks;
  return possible ? nullptr : "impossible numbers";
}

std::span<const std::byte> CopyIn(std::span<const std::byte> copies, uint64_t copy) {
  return copies.subspan(copy * Disk::kBlock, Disk::kBlock);
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
    if (FaultOf(CopyIn(copies, copy), identity, blocks) != nullptr) continue;
    const auto checkpoint = LoadAs<CheckpointBlock>(CopyIn(copies, copy));
    if (!best || checkpoint.generation > best->generation) best = checkpoint;
  }
  return best;
}

std::string CheckpointFaults(std::span<const std::byte> copies, const RingIdentity& identity, uint64_t blocks) {
  std::string faults;
  for (uint64_t copy = 0; copy < kFirstRecordBlock; ++copy) {
    const char* const fault = FaultOf(CopyIn(copies, copy), identity, blocks);
    faults += "; copy " + std::to_string(copy + 1) + ": " + (fault == nullptr ? "valid" : fault);
  }
  return faults.substr(2);
}

}  // namespace erda::journal
