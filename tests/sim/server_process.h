// The simulated server: what server.cc does with threads, one step at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "fabric/sim/network.h"
#include "server/crash_pool.h"
#include "server/shard.h"
#include "sim/cluster.h"

namespace erda::sim {

// Where the server is reached on each of its fabrics.
inline std::string ServerAddress(size_t port) { return "sim:server" + std::to_string(port); }

inline format::GeometryWish WishOf(const Plan& plan) {
  return {plan.pool_size, plan.shards, plan.region_size, plan.segment_size, plan.index_entries, plan.regions_per_head};
}

class ServerProcess {
 public:
  // The pool gets contents that depend on the plan alone.
  ServerProcess(fabric::SimNetwork& network, const Plan& plan);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  // Recovers the pool if it was not closed; as often as that is cut off, too.
  void Start();
  void Stop();  // cleanly
  // The process dies, or the power goes, as the plan says.
  void Crash();
  // The power goes while it is down. REQUIRES: it is, and its pool is power-safe.
  void CutPower();
  // From now on it does not crash by itself.
  void StayUp() { crashes_ = false; }
  // Damages the key's value, if it is settled for good, and returns it as it was.
  std::optional<std::string> Damage(std::string_view key);
  // Flips a bit of an index entry, and lets the shard go on until it has undone that. The others stand still until
  // then: they may see what the flip makes of the entry. False: not now.
  bool FlipIndexBit(Random& random);
  // Flips a bit of an index entry of the pool, if the pool is closed. The others stand still until the next server has
  // undone that. False: not now.
  bool FlipIndexBitAtRest(Random& random);
  [[nodiscard]] bool running() const { return !listeners_.empty(); }
  std::function<void()> on_power_cut;  // called once what is lost is lost
  // Called while the server waits for what it has flushed; ends: it will not get there.
  std::function<void(bool ends)> on_fence;
  // The latest moment, in milliseconds, that the clock of any server so far may have told a put.
  [[nodiscard]] uint64_t LatestTime() const;
  // What clients read of a shard's time; while the server is down, what they read last.
  [[nodiscard]] uint64_t TimeOf(uint32_t shard) const;
  // Some of the work there is.
  void Step(Random& random);

  // The sum over all shards, since the first start.
  // Blocks of the index that were split since the pool was made.
  [[nodiscard]] uint64_t Splits() const;
  [[nodiscard]] uint64_t Count(format::Counter counter) const;
  // Why it could not do as told; empty if it could.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] uint64_t recoveries_cut_off() const { return recoveries_cut_off_; }
  [[nodiscard]] uint64_t growths() const { return growths_; }
  [[nodiscard]] uint64_t process_deaths() const { return process_deaths_; }
  [[nodiscard]] uint64_t power_cuts() const { return power_cuts_; }
  // The sum over all recoveries.
  [[nodiscard]] const RecoveryReport& recovered() const { return recovered_; }

 private:
  struct ProcessEnds {};  // thrown out of a fence

  struct ShardProcess {
    std::vector<std::unique_ptr<fabric::CompletionQueue>> queues;  // by port
    std::unique_ptr<server::Shard> shard;
  };

  void MakePool();
  [[nodiscard]] bool power_safe() const { return plan_.flush_methods[0] != format::FlushMethod::kNone; }
  [[nodiscard]] Result<std::unique_ptr<server::FormattedPool>> OpenPool();
  // The process has ended, the machine has not.
  void KeepImages();
  // Of the medium: the pool has not grown by that.
  void Widen();
  void StartClock();
  Status StartOnce();
  // Lets the shards count their slots. Fails if they have not undone the flip of FlipIndexBitAtRest.
  void EndRest();
  void Inspect(bool recovered);
  void Drop();
  [[nodiscard]] double ShareKept();
  void Require(const Status& status);
  void Admit(std::unique_ptr<fabric::Incoming> incoming, size_t port);

  fabric::SimNetwork& network_;
  const Plan& plan_;
  std::string failure_;
  uint64_t starts_ = 0;
  uint64_t recoveries_cut_off_ = 0;
  uint64_t growths_ = 0;
  uint64_t process_deaths_ = 0;
  uint64_t power_cuts_ = 0;
  RecoveryReport recovered_;
  uint64_t moves_fenced_ = 0;  // kCleanMoves at the last fence
  uint64_t splits_fenced_ = 0;
  uint32_t fences_of_split_ = 0;  // that come yet
  bool crashes_ = true;
  bool flipped_at_rest_ = false;
  bool alone_ = false;                                            // nobody goes on in a fence, and no fence is the last
  static constexpr uint64_t kWallMicros = 1'000'000'000'000'000;  // when the network began
  std::optional<ServerTime> time_;                                // of the server that started last
  uint64_t latest_micros_ = kWallMicros;                          // of those before it
  std::vector<uint64_t> told_;                                    // by shard, what clients read before the last end
  uint64_t set_back_ = 0;                                         // how far the machine's wall clock was, in all
  Random crash_random_;
  Random time_random_;
  Random grow_random_;
  server::CrashPool::Images images_;  // of the pool, while nobody has it open
  server::CrashPool* crash_pool_ = nullptr;
  std::array<uint64_t, static_cast<size_t>(format::Counter::kCount)> before_{};  // of the servers stopped so far

  std::vector<std::shared_ptr<fabric::Fabric>> fabrics_;  // by port
  std::unique_ptr<server::FormattedPool> pool_;
  std::vector<server::PoolRegions> regions_;  // by port
  std::vector<ShardProcess> shards_;
  std::vector<std::unique_ptr<fabric::Listener>> listeners_;  // by port; none: not running
};

}  // namespace erda::sim
