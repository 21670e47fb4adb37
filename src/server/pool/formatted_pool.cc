#include "server/pool/formatted_pool.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <system_error>

#include "base/bytes.h"
#include "base/crypto.h"
#include "base/planted.h"

namespace erda::server {

using format::MirrorRole;

Result<std::unique_ptr<FormattedPool>> FormattedPool::Open(const nvm::PoolOptions& options,
                                                           const format::GeometryWish& wish, bool offline) {
  auto pool = nvm::Pool::Open(options);
  if (!pool.ok()) return pool.status();
  return Take(*std::move(pool), options, wish, offline);
}

Result<std::unique_ptr<FormattedPool>> FormattedPool::Take(std::unique_ptr<nvm::Pool> pool,
                                                           const nvm::PoolOptions& options,
                                                           const format::GeometryWish& wish, bool offline) {
  return Take(std::unique_ptr<FormattedPool>(new FormattedPool(std::move(pool))), options, wish, offline);
}

Result<std::unique_ptr<FormattedPool>> FormattedPool::Take(std::unique_ptr<FormattedPool> formatted,
                                                           const nvm::PoolOptions& options,
                                                           const format::GeometryWish& wish, bool offline) {
  // A device always exists already. It is to become a pool if the caller gives a size, and zeroes stand where
  // superblocks would be.
  const bool blank_device = formatted->pool().is_device() && options.size != 0 && IsBlank(formatted->pool());
  const bool create = formatted->pool().created() || blank_device;
  if (blank_device && options.size < formatted->pool().size()) formatted->pool().Narrow(options.size);
  Status status = create ? formatted->Create(wish) : formatted->Check(options.size, wish, offline);
  if (status.ok() && options.populate) status = formatted->pool().Populate();
  if (status.ok()) return formatted;
  formatted->pool().RemoveIfCreated();
  return Status(status.code(), "pool " + options.path + ": " + std::string(status.message()));
}

Result<std::unique_ptr<FormattedPool>> FormattedPool::Make(const nvm::PoolOptions& options,
                                                           const format::GeometryWish& wish, bool journaled) {
  const auto exists = [&options] { return Status(Code::kConflict, "pool " + options.path + ": it exists already"); };
  std::error_code none;
  if (std::filesystem::is_regular_file(options.path, none)) return exists();
  auto pool = nvm::Pool::Open(options);
  if (!pool.ok()) return pool.status();
  // (Somebody else may have made it since.)
  const bool is_new = (*pool)->created() || ((*pool)->is_device() && IsBlank(**pool));
  if (!is_new) return exists();
  std::unique_ptr<FormattedPool> formatted(new FormattedPool(*std::move(pool)));
  formatted->superblock_.journaled = journaled ? 1 : 0;
  return Take(std::move(formatted), options, wish, false);
}

uint64_t FormattedPool::time() const {
  uint64_t millis = 0;
  for (uint32_t shard = 0; shard < geometry().shards; ++shard) {
    const auto bytes = pool_->bytes().subspan(format::ShardRecordOffset(shard), sizeof(format::ShardRecord));
    millis = std::max(millis, format::CheckedWord(LoadAs<format::ShardRecord>(bytes).time).number());
  }
  return millis * 1000;
}

bool FormattedPool::IsBlank(const nvm::Pool& pool) {
  return IsZero(pool.bytes().first(std::min<uint64_t>(pool.size(), format::kShardRecordsOffset)));
}

Status FormattedPool::Create(const format::GeometryWish& wish) {
  format::GeometryWish exact = wish;
  exact.pool_size = pool_->size();
  if (exact.shards == 0) exact.shards = 1;
  auto geometry = format::ChooseGeometry(exact);
  if (!geometry.ok()) return geometry.status();
  superblock_.magic = format::kPoolMagic;
  superblock_.format_version = superblock_.journaled != 0 ? format::kJournaledVersion : format::kFormatVersion;
  superblock_.geometry = *geometry;
  std::random_device random;
  for (uint8_t& byte : superblock_.uuid) byte = static_cast<uint8_t>(random());
  FillRandom(std::as_writable_bytes(std::span(superblock_.hash_seed)));
  // Except for the superblocks, an empty pool is zeroes: they show where a log ends. A device may hold any other bytes.
  if (!pool_->created()) nvm_->ZeroOut(format::kShardRecordsOffset, pool_->size() - format::kShardRecordsOffset);
  if (auto status = MarkClosed(); !status.ok()) return status;
  return pool_->SyncName();
}

Status FormattedPool::MarkClosed() {
  if (auto status = pool_->Sync(); !status.ok()) return status;
  return Mark(true, Boot());
}

// Nothing vouches for the bytes, also if the mark does not reach the medium.
Status FormattedPool::MarkUnvouched() {
  superblock_.clean = 0;
  superblock_.boot = format::kUnvouchedBoot;
  return Mark(false, format::kUnvouchedBoot);
}

Status FormattedPool::Mark(bool clean, const format::BootId& boot) {
  format::Superblock next = superblock_;
  next.clean = clean ? 1 : 0;
  next.boot = boot;
  return copies_differ_ ? WriteBothCopies(next) : WriteSuperblock(next);
}

Status FormattedPool::Check(uint64_t size, const format::GeometryWish& wish, bool offline) {
  auto found = format::FindSuperblock(pool_->bytes());
  if (!found.ok()) return found.status();
  const format::Superblock& sb = found->superblock;
  if (size != 0 && size != sb.geometry.pool_size) {
    return {Code::kInvalidArgument, "it has " + std::to_string(sb.geometry.pool_size) + " bytes, not the " +
                                        std::to_string(size) + " asked for" +
                                        (size > sb.geometry.pool_size ? "; erda-pool resize makes a pool larger" : "")};
  }
  if (wish.shards != 0 && wish.shards != sb.geometry.shards) {
    return {Code::kInvalidArgument, "it was made with " + std::to_string(sb.geometry.shards) + " shards, not the " +
                                        std::to_string(wish.shards) + " asked for"};
  }
  if (const uint64_t limit = format::GrowthLimit(sb.geometry); wish.grow_to > limit) {
    return {Code::kInvalidArgument, "it can grow to " + std::to_string(limit) + " bytes, and not to the " +
                                        std::to_string(wish.grow_to) +
                                        " asked for: dump it, and load it into a pool that is made to grow so far"};
  }
  // If one of the two copies does not verify, it may have been the newer one. It may then have said that the pool is in
  // use.
  needs_recovery_ = sb.clean != 1 || found->other_damaged;
  superblock_ = sb;
  superblock_.clean = needs_recovery_ ? 0 : 1;
  if (auto status = CheckMirror(offline); !status.ok()) return status;
  if (auto status = CheckJournal(offline); !status.ok()) return status;
  copy_ = found->copy;
  pool_->Narrow(sb.geometry.pool_size);
  return {};
}

// The file of a pool with a journal has all of the pool only if it says that it was closed cleanly.
Status FormattedPool::CheckJournal(bool offline) const {
  if (superblock_.journaled == 0 || pool_->holds_later()) return {};
  if (!offline) return {Code::kInvalidArgument, "it has a journal, and does not open without it; give its name, too"};
  if (!needs_recovery_) return {};
  return {Code::kConflict, "it has a journal, and was not closed cleanly: start a server with both, and stop that"};
}

Status FormattedPool::CheckMirror(bool offline) const {
  if (offline) return {};
  switch (superblock_.role()) {
    case MirrorRole::kNone:
      return {};
    case MirrorRole::kPrimary:
      if (!superblock_.names_mirror() || pool_->has_mirrors()) return {};
      return {Code::kConflict,
              "it is a primary, and its mirror may be promoted in its place. So it is served only together with that "
              "mirror, which would lack the puts otherwise"};
    case MirrorRole::kFilling:
      return {
          Code::kConflict,
          "it is a mirror that may lack acknowledged puts: serve its primary, and let the mirror get them from there"};
    case MirrorRole::kInSync:
      break;
  }
  return {Code::kConflict, "it is a mirror, and in sync: it can serve clients only after it was promoted"};
}

// --- Mirrors

// Both functions write both copies, one after the other. Damage to one copy leaves what the other says. It must not
// make a mirror fit for a promotion again, bring an old epoch back, or make a primary forget its mirror. With one copy
// of an older version, a program that knows no mirrors would open the pool by that copy.
//
// A process that dies between the two writes leaves two copies that differ. It has not returned, so both are right. The
// next owner marks the pool open before it changes it, which replaces the older copy.

Status FormattedPool::MarkMirror(MirrorRole role, uint64_t mirror_id, uint32_t epoch) {
  // A server recovers what a mirror has only after a promotion.
  if (superblock_.is_mirror() && !format::IsMirror(role)) {
    return {Code::kInvalidArgument, "it is a mirror, and becomes another pool only by a promotion"};
  }
  if (role == MirrorRole::kInSync && !superblock_.is_mirror()) {
    return {Code::kInvalidArgument, "it is no mirror, so it cannot be in sync"};
  }
  if (epoch < superblock_.epoch) return {Code::kInvalidArgument, "its epoch does not go back"};
  // With a journal, a clean mark tells that the pool in memory is not needed any more. An open pool needs it.
  format::Superblock next = pool_->holds_later() ? InUse() : superblock_;
  next.format_version = format::kMirroredVersion;
  next.mirror_role = static_cast<uint32_t>(role);
  next.mirror_id = mirror_id;
  next.epoch = epoch;
  if (!format::MirrorFieldsFit(next)) return {Code::kInvalidArgument, "the mirror's id does not fit the role"};
  return WriteBothCopies(next);
}

Status FormattedPool::Promote(bool force) {
  if (!superblock_.is_mirror()) return {Code::kInvalidArgument, "it is no mirror, so it cannot be promoted"};
  const bool filling = superblock_.role() == MirrorRole::kFilling;
  if (filling && !force) {
    return {Code::kConflict, "it is a mirror that is not in sync: as a primary it would lack acknowledged puts"};
  }
  if (superblock_.clean != 1 && !IsVouched() && !force) {
    return {Code::kConflict,
            "it is a mirror that may have lost bytes: its machine was started again, or a sync failed. As a primary it "
            "would lack acknowledged puts"};
  }
  if (superblock_.epoch == UINT32_MAX) return {Code::kResourceExhausted, "it was promoted too often"};
  format::Superblock next = InUse();
  // The next start verifies each value: the copy of the primary's pool may have ended in the middle.
  if (filling) next.boot = format::kUnvouchedBoot;
  ++next.epoch;
  next.mirror_role = static_cast<uint32_t>(MirrorRole::kPrimary);
  next.mirror_id = 0;
  if (auto status = WriteBothCopies(next); !status.ok()) return status;
  needs_recovery_ = true;
  return {};
}

// A pool that was closed cleanly has all bytes on the medium. So only bytes that come from now on wait in this
// machine's page cache. In a pool that is in use, older bytes may wait in the page cache of the boot that it names.
format::Superblock FormattedPool::InUse() const {
  format::Superblock next = superblock_;
  if (next.clean == 1) next.boot = Boot();
  next.clean = 0;
  return next;
}

// --- Growth

Status FormattedPool::Grow(uint64_t size) {
  // Their pools have the same size. The larger one would be of no use to the other.
  if (superblock_.is_mirror() || superblock_.names_mirror()) {
    return {Code::kConflict, "it is a mirror, or has one: the two pools must have the same size"};
  }
  if (needs_recovery_) {
    return {Code::kConflict, "it needs recovery: start a server with it, and stop that"};
  }
  const format::Geometry before = geometry();
  auto grown = format::GrownGeometry(before, size);
  if (!grown.ok()) return grown.status();
  if (auto status = pool_->Widen(before.pool_size, size); !status.ok()) return status;
  nvm_.emplace(*pool_);
  // New regions are zeroes, as in a new pool, and free. A file is zeroes from the old end of the pool on. A device may
  // hold any bytes there, also in the part of a region between the last region and the old end.
  const uint64_t regions_end = before.RegionOffset(before.regions());
  nvm_->ZeroOut(regions_end, (pool_->is_device() ? size : before.pool_size) - regions_end);
  nvm_->ZeroOut(format::kRegionTableOffset + before.regions() * sizeof(uint64_t),
                (grown->regions() - before.regions()) * sizeof(uint64_t));
  // Pairs with FindSuperblock: a server that finds the new superblock also finds these zeroes.
  nvm_->Fence();
  superblock_.geometry = *grown;
  // Writes both copies: damage to one must not bring the smaller pool back once the larger one holds values. The first
  // copy is on the medium before the second is written (WriteSuperblock). So one of the two is always whole.
  for (int copy = 0; copy < 2; ++copy) {
    if (auto status = MarkClosed(); !status.ok()) return status;
  }
  return {};
}

// --- Writing the superblock

// The first copy is on the medium before the second is written. So one of the two is always whole.
Status FormattedPool::WriteBothCopies(const format::Superblock& next) {
  const format::Superblock before = superblock_;
  for (int copy = 0; copy < 2; ++copy) {
    if (auto status = WriteSuperblock(next); !status.ok()) {
      // If the first copy is on the medium, it counts there. The generation stays, so that the next write replaces the
      // second one.
      const uint64_t generation = superblock_.generation;
      superblock_ = before;
      superblock_.generation = generation;
      return status;
    }
    copies_differ_ = copy == 0;
  }
  return {};
}

// Writes the copy that does not count, so that a write which stays half done leaves the other one. Sets the generation
// and the crc. After an error nothing has changed but the bytes of that copy.
Status FormattedPool::WriteSuperblock(format::Superblock next) {
  // An earlier server may have died before the copy that counts was on the medium. It must be there before the other
  // one is touched.
  if (!Planted(Flaw::kSuperblockNotFlushed)) nvm_->Persist(format::kSuperblockOffsets[copy_], sizeof(superblock_));
  next.generation = superblock_.generation + 1;
  next.crc = format::SuperblockCrc(next);
  const uint64_t at = format::kSuperblockOffsets[1 - copy_];
  nvm_->Fence();
  nvm_->Write(at, BytesOf(next));
  nvm_->Persist(at, sizeof(next));
  // After an error, the next attempt stores the same copy again, so that its page counts as changed. It must not store
  // the other copy: that may be the only one on the medium.
  if (auto status = pool_->Sync(0, format::kShardRecordsOffset); !status.ok()) return status;
  superblock_ = next;
  copy_ = 1 - copy_;
  return {};
}

}  // namespace erda::server
