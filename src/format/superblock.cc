#include "format/superblock.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace erda::format {

uint32_t SuperblockCrc(const Superblock& superblock) {
  Superblock copy = superblock;
  copy.crc = 0;
  return Crc32c(0, BytesOf(copy));
}

bool MirrorFieldsFit(const Superblock& superblock) {
  if (superblock.format_version != kMirroredVersion) {
    return superblock.epoch == 0 && superblock.mirror_id == 0 && superblock.role() == MirrorRole::kNone;
  }
  switch (superblock.role()) {
    case MirrorRole::kNone:
      return superblock.mirror_id == 0;
    case MirrorRole::kPrimary:
      return true;
    case MirrorRole::kFilling:
    case MirrorRole::kInSync:
      return superblock.mirror_id != 0;
  }
  return false;
}

namespace {

// A mirrored pool may have a journal. In any other pool the version says whether there is one.
bool JournalFits(const Superblock& superblock) {
  if (superblock.format_version == kMirroredVersion) return superblock.journaled <= 1;
  return superblock.journaled == (superblock.format_version == kJournaledVersion ? 1U : 0U);
}

Status CheckCopy(const Superblock& sb, uint64_t pool_size) {
  if (sb.magic != kPoolMagic) return {Code::kCorruption, "it is not an Erda pool (wrong magic number)"};
  // The check of the version comes first: another version may compute the checksum in another way.
  if (!IsReadable(sb.format_version)) {
    return Status(Code::kInvalidArgument, "it has format version " + std::to_string(sb.format_version) +
                                              ", and this program reads version " + std::to_string(kFormatVersion));
  }
  if (SuperblockCrc(sb) != sb.crc) return {Code::kCorruption, "its superblock is damaged (wrong checksum)"};
  // Bytes after the pool do not belong to it. A resize made that room, and a crash came before the pool grew.
  if (sb.geometry.pool_size > pool_size) {
    return Status(Code::kInvalidArgument, "it was made with " + std::to_string(sb.geometry.pool_size) +
                                              " bytes and now has " + std::to_string(pool_size));
  }
  if (!JournalFits(sb)) {
    return {Code::kCorruption, "its superblock is damaged: its version and its journal do not fit"};
  }
  if (!MirrorFieldsFit(sb)) {
    return {Code::kCorruption, "its superblock is damaged: what it says of mirrors cannot be"};
  }
  if (auto status = CheckGeometry(sb.geometry); !status.ok()) {
    return {Code::kCorruption, "its superblock is damaged: " + std::string(status.message())};
  }
  return {};
}

}  // namespace

Result<FoundSuperblock> FindSuperblock(std::span<const std::byte> pool_bytes) {
  return FindSuperblock(pool_bytes, pool_bytes.size());
}

Result<FoundSuperblock> FindSuperblock(std::span<const std::byte> front, uint64_t pool_size) {
  std::optional<FoundSuperblock> best;
  bool damaged = false;
  Status worst;
  for (int copy = 0; copy < 2; ++copy) {
    const uint64_t offset = kSuperblockOffsets[copy];
    if (front.size() < offset + sizeof(Superblock)) {
      return Status(Code::kCorruption, "it is not an Erda pool (it has " + std::to_string(front.size()) + " bytes)");
    }
    const auto sb = LoadAs<Superblock>(front.subspan(offset));
    Status status = CheckCopy(sb, pool_size);
    if (status.ok()) {
      if (!best || sb.generation > best->superblock.generation) best = FoundSuperblock{sb, copy, false};
      continue;
    }
    // A copy that was never written is zeroes.
    const auto bytes = BytesOf(sb);
    damaged |= std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
    if (worst.ok() || (sb.magic == kPoolMagic && copy == 1)) worst = std::move(status);
  }
  if (!best) return worst;
  best->other_damaged = damaged;
  return *best;
}

}  // namespace erda::format
