#include "server/versions/pool_part.h"

#include <optional>
#include <string>

#include "base/bytes.h"
#include "format/version_limit.h"
#include "server/recovery/recovery.h"
#include "server/recovery/verification.h"

namespace erda::server {

using format::Counter;

namespace {

Status DamagedLimit(uint32_t shard) {
  return {Code::kCorruption, "the record of shard " + std::to_string(shard) +
                                 " is damaged: its limit of versions does not verify, and versions could repeat"};
}

}  // namespace

PoolPart::PoolPart(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control, const ServerTime& time, uint64_t note_ahead)
    : nvm_(nvm),
      geometry_(geometry),
      pool_seed_(pool_seed),
      shard_(shard),
      counters_(control),
      clock_(nvm, shard, control, time, note_ahead),
      log_(nvm, geometry, pool_seed, shard, control),
      index_(nvm, geometry, shard, index::Published::In(control, geometry), &log_),
      chain_(nvm, index_, log_),
      numbers_(nvm, shard) {}

PoolPart::~PoolPart() = default;

format::ShardRecord PoolPart::Record() const {
  return LoadAs<format::ShardRecord>(nvm_.Bytes(RecordOffset(), sizeof(format::ShardRecord)));
}

Status PoolPart::Open() {
  const format::ShardRecord record = Record();
  const auto limit = format::VersionLimitIn(record.version_limit);
  if (!limit) return DamagedLimit(shard_);
  if (auto status = log_.Recover().Open(*limit); !status.ok()) return status;
  if (auto status = index_.shape().TakeUp(log_.regions().runs()); !status.ok()) return status;
  // If the number of keys is damaged they are counted, as after a crash.
  const format::CheckedWord keys(record.keys);
  const bool known = !keys.damaged() && keys.number() <= index_.size();
  if (known) {
    index_.Open(keys.number(), format::RestSum::In(record));
  } else {
    index_.Open(std::nullopt);
  }
  Begin(*limit);
  return {};
}

Status PoolPart::Look() {
  const auto limit = format::VersionLimitIn(Record().version_limit);
  if (!limit) return DamagedLimit(shard_);
  recovery_ = std::make_unique<Recovery>(nvm_, geometry_, shard_, index_, log_, chain_);
  return recovery_->Look(*limit);
}

RecoveryReport PoolPart::Repair() {
  const RecoveryReport report = recovery_->Repair();
  recovery_.reset();
  Begin(format::VersionLimitIn(Record().version_limit).value());
  return report;
}

Status PoolPart::LookUnvouched() {
  verification_ = std::make_unique<Verification>(nvm_, geometry_, pool_seed_, shard_);
  return verification_->Look();
}

Status PoolPart::Verify(const std::function<void(std::string_view key)>& on_damage, RecoveryReport* report) {
  const Status status = verification_->Repair(on_damage, report);
  verification_.reset();
  return status.ok() ? Open() : status;
}

void PoolPart::Begin(uint64_t version_limit) {
  index_.shape().MendReaches();
  numbers_.Begin(version_limit);
  clock_.Begin();
  counters_.Set(Counter::kIndexSlots, index_.size());
  counters_.Set(Counter::kLogBytesTotal, log_.regions().bytes_total());
  PublishGauges();
}

void PoolPart::Close() {
  log_.Close();
  const index::Census::Totals totals = index_.census().Total();
  const auto store = [this](uint64_t field, uint64_t word) { nvm_.Store64(RecordOffset() + field, word); };
  store(offsetof(format::ShardRecord, keys), format::CheckedWord::Of(totals.used).raw());
  store(offsetof(format::ShardRecord, rest_place), totals.sum.place_word());
  store(offsetof(format::ShardRecord, rest_hash), totals.sum.hash_word());
  clock_.Close();
  nvm_.Persist(RecordOffset(), sizeof(format::ShardRecord));
}

void PoolPart::PublishGauges() {
  counters_.Set(Counter::kKeys, index_.census().used());
  counters_.Set(Counter::kLogBytesUsed, log_.bytes_used());
  // The log may not have counted yet the objects that the last batch published (CountRegions).
  counters_.Set(Counter::kLogBytesLive, log_.bytes_live());
  counters_.Set(Counter::kFreeRegions, log_.regions().free_regions());
  counters_.Set(Counter::kFlipsUndone, index_.mender().flips_undone());
  counters_.Set(Counter::kNvmBytes, nvm_.counters().bytes);
  counters_.Set(Counter::kNvmFlushes, nvm_.counters().flushes);
  counters_.Set(Counter::kNvmFences, nvm_.counters().fences);
}

}  // namespace erda::server
