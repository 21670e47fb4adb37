#include "server/recovery/verification.h"

#include "base/bytes.h"
#include "format/superblock.h"
#include "format/version_limit.h"
#include "server/recovery/region_repair.h"

namespace erda::server {

Verification::Verification(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard)
    : nvm_(nvm),
      geometry_(geometry),
      shard_(shard),
      bytes_(nvm, geometry),
      regions_(nvm, bytes_, geometry, pool_seed, shard),
      index_(nvm, bytes_, geometry, shard),
      versions_(nvm, shard) {}

Status Verification::Look() {
  if (auto status = regions_.Look(); !status.ok()) return status;
  return index_.Look();
}

Status Verification::Repair(const TellDamaged& tell, RecoveryReport* report) {
  RecoveryReport done;
  IndexRepair(nvm_, geometry_, shard_, index_, regions_, versions_, tell, &done).Repair();
  RegionRepair(nvm_, bytes_, geometry_, shard_, versions_).Repair(regions_, index_, &done);
  StoreRecord();
  nvm_.Fence();
  done.shards_verified = 1;
  *report = done;
  // Syncs the limit before a version is given out: the next power cut must not bring the old limit back. The same leap
  // from the old limit would lead to the same versions.
  return nvm_.Sync(format::kShardRecordsOffset, geometry_.index_offset - format::kShardRecordsOffset);
}

void Verification::StoreRecord() {
  const uint64_t at = format::ShardRecordOffset(shard_);
  auto record = LoadAs<format::ShardRecord>(nvm_.Bytes(at, sizeof(format::ShardRecord)));
  record.version_limit = format::VersionLimitWord(versions_.NextLimit());
  uint64_t keys = 0;
  for (index::Slot slot = 0; slot < index_.layout().slots(); ++slot) keys += index_.At(slot).word != 0 ? 1 : 0;
  record.keys = format::CheckedWord::Of(keys).raw();
  record.move = 0;
  record.rest_place = record.rest_hash = 0;
  nvm_.Write(at, BytesOf(record));
  nvm_.Persist(at, sizeof(record));
}

}  // namespace erda::server
