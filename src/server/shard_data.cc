#include "server/shard_data.h"

namespace erda::server {

namespace {

// Index slots that one CountKeys counts. That takes some microseconds, since it looks at an object for each key.
constexpr uint64_t kCountStep = 128;

}  // namespace

ShardData::ShardData(FormattedPool& pool, uint32_t shard, ControlMemory& control, const ShardOptions& options)
    : pool_(pool),
      nvm_(pool.pool().OfShard(shard)),
      versions_(nvm_, pool.geometry(), pool.seed(), shard, control.bytes(),
                VersionsOptions{options.reservations_per_client, options.time, options.note_ahead,
                                pool.superblock().hash_seed, options.index_grows}),
      cleaner_(pool.pool(), pool.geometry(), pool.seed(), shard, control.bytes(), clean_queues_, *options.time),
      cleaning_(versions_, pool.geometry(), control.bytes(), clean_queues_),
      pages_ahead_(versions_.log(), pool.geometry(), shard, pool.pool().large_pages(), *options.clock, clean_queues_) {
  cleaning_.on_merge = [this, &activity = control.activity(), &clock = *options.clock](bool begins) {
    const Nanoseconds now = clock.Now();
    if (!begins) activity.TimeCleanRegion(now - merging_since_);
    merging_since_ = now;
  };
}

Status ShardData::TakeUp() {
  if (pool_.needs_verification()) return versions_.part().LookUnvouched();
  return pool_.needs_recovery() ? versions_.part().Look() : versions_.part().Open();
}

// A shard with news about its index is not done: its next step tells them, and undoes a flip at rest.
bool ShardData::CountKeys() {
  return versions_.growth().CountKeys(kCountStep) && !versions_.index().mender().has_news();
}

}  // namespace erda::server
