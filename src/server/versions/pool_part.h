// A shard's part of the pool: its index, its log, the numbers of its versions and its clock. Takes them up and closes
// them together.
//
// Owns these, and the shard's record in the pool. Requires: the caller takes it up once, in one of three ways, before
// any other use. The caller closes it when no client can write any more and nothing is in flight. One thread calls it
// at a time: first the one that starts the server, then the shard's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/server_time.h"
#include "erda/server.h"
#include "format/geometry.h"
#include "format/superblock.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/control/expiry_clock.h"
#include "server/pool/chain.h"
#include "server/pool/version_numbers.h"
#include "server/versions/all_published.h"

namespace erda::server {

class Recovery;
class Verification;

class PoolPart {
 public:
  PoolPart(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
           std::span<std::byte> control, const ServerTime& time, uint64_t note_ahead);
  ~PoolPart();
  PoolPart(const PoolPart&) = delete;
  PoolPart& operator=(const PoolPart&) = delete;

  // Takes up a pool that was closed cleanly, or a new one.
  Status Open();
  // Takes up a pool whose server died or lost power (recovery.h): first Look, which changes nothing, then Repair. The
  // server calls Look for all shards before the first Repair.
  Status Look();
  // Requires: Look was ok.
  RecoveryReport Repair();
  // Takes up a pool whose bytes nothing vouches for (verification.h): first LookUnvouched, then Verify. The part is
  // open afterwards.
  Status LookUnvouched();
  // Requires: LookUnvouched was ok.
  Status Verify(const std::function<void(std::string_view key)>& on_damage, RecoveryReport* report);
  // Leaves the part as Open takes it up, persistently.
  void Close();

  [[nodiscard]] index::Index& index() { return index_; }
  [[nodiscard]] const index::Index& index() const { return index_; }
  [[nodiscard]] log::ShardLog& log() { return log_; }
  [[nodiscard]] Chain& chain() { return chain_; }
  // Returns the clock by which the values of this shard expire.
  [[nodiscard]] ExpiryClock& clock() { return clock_; }
  [[nodiscard]] VersionNumbers& numbers() { return numbers_; }
  // Returns the counters in the control block.
  [[nodiscard]] Counters& counters() { return counters_; }
  // Writes the gauges of index, log and medium into the control block.
  void PublishGauges();
  // Returns the counts of the log's regions, after the log has counted what all entries name. If it had not, also
  // writes the gauge of their bytes.
  [[nodiscard]] log::RegionCounts CountRegions(AllPublished /*proof*/) {
    if (index_.has_untold()) {
      counters_.Set(format::Counter::kLogBytesLive, log_.counts(index_.TellPublished()).bytes_live());
    }
    return log_.counts(index_.TellPublished());
  }

 private:
  [[nodiscard]] format::ShardRecord Record() const;
  [[nodiscard]] uint64_t RecordOffset() const { return format::ShardRecordOffset(shard_); }
  void Begin(uint64_t version_limit);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t shard_;
  Counters counters_;
  ExpiryClock clock_;
  log::ShardLog log_;
  index::Index index_;
  Chain chain_;
  VersionNumbers numbers_;
  std::unique_ptr<Recovery> recovery_;          // between Look and Repair
  std::unique_ptr<Verification> verification_;  // between LookUnvouched and Verify
};

}  // namespace erda::server
