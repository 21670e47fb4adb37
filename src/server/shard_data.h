// The part of a pool that belongs to one shard: the versions of its keys, and the cleaning of their log.
//
// Owns the versions, and both sides of cleaning. Requires: the caller calls TakeUp first, then Repair or Verify if the
// pool needs it, then BeginCleaning. No client is served before that. The shard's thread calls it. The cleaner's thread
// may use cleaner() and clean_queues().
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "erda/server.h"
#include "nvm/writer.h"
#include "server/cleaner/cleaner.h"
#include "server/cleaning/cleaning_policy.h"
#include "server/cleaning/pages_ahead.h"
#include "server/control/control_memory.h"
#include "server/pool/formatted_pool.h"
#include "server/sessions/shard_options.h"
#include "server/versions/versions.h"

namespace erda::server {

class ShardData {
 public:
  // Requires: pool and control outlive it.
  ShardData(FormattedPool& pool, uint32_t shard, ControlMemory& control, const ShardOptions& options);
  ShardData(const ShardData&) = delete;
  ShardData& operator=(const ShardData&) = delete;

  // Looks at the part, and changes nothing in the pool. Returns kCorruption if the part is damaged.
  Status TakeUp();
  // Recovers the part. Requires: all shards of the pool were taken up.
  RecoveryReport Repair() { return versions_.part().Repair(); }
  // Recovers the part of a pool that needs verification. Requires: no thread polls the shard.
  Status Verify(const std::function<void(std::string_view key)>& on_damage, RecoveryReport* report) {
    return versions_.part().Verify(on_damage, report);
  }
  void BeginCleaning() {
    cleaning_.Begin();
    pages_ahead_.Begin();
  }
  // `told` hears of each key whose value the shard finds damaged while it works. The key is empty if nobody can know it
  // any more.
  void OnDamage(std::function<void(std::string_view key)> told) { cleaning_.on_damage = std::move(told); }

  // While values may expire, the word that clients Read is not older than this. Requires: the shard polls this often,
  // even when it is idle.
  static constexpr Nanoseconds kTimeAge = std::chrono::milliseconds(20);
  [[nodiscard]] bool keeps_time() const { return clean_queues_.MayExpire(); }
  void KeepTime() {
    if (keeps_time()) (void)versions_.part().clock().Raise();
  }
  // Counts the keys in a few slots of the index. Returns true once all are counted, and the next step of the shard has
  // nothing to tell of the index.
  bool CountKeys();

  [[nodiscard]] Versions& versions() { return versions_; }
  [[nodiscard]] const Versions& versions() const { return versions_; }
  [[nodiscard]] CleaningPolicy& cleaning() { return cleaning_; }
  [[nodiscard]] PagesAhead& pages_ahead() { return pages_ahead_; }
  [[nodiscard]] Cleaner& cleaner() { return cleaner_; }
  [[nodiscard]] CleanQueues& clean_queues() { return clean_queues_; }
  [[nodiscard]] const nvm::Writer& nvm() const { return nvm_; }
  // All that the shard has flushed is persistent on return, as far as its medium is the pool.
  void Fence() { nvm_.Fence(); }

 private:
  const FormattedPool& pool_;
  nvm::Writer nvm_;
  Versions versions_;
  CleanQueues clean_queues_;
  Cleaner cleaner_;
  CleaningPolicy cleaning_;
  PagesAhead pages_ahead_;
  Nanoseconds merging_since_{0};
};

}  // namespace erda::server
