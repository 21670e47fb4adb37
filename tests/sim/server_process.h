// The simulated server. It does the work of server.cc's threads, one step at a time.
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

// Returns the server's address on one of its fabrics.
inline std::string ServerAddress(size_t port) { return "sim:server" + std::to_string(port); }

inline format::GeometryWish WishOf(const Plan& plan) {
  return {plan.pool_size, plan.shards, plan.region_size, plan.segment_size, plan.index_entries, plan.regions_per_head};
}

class ServerProcess {
 public:
  // The content of the pool follows from the plan alone.
  ServerProcess(fabric::SimNetwork& network, const Plan& plan);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  // Recovers the pool if it was not closed cleanly. Starts again if a crash cuts the recovery off.
  void Start();
  void Stop();  // closes the pool cleanly
  // Ends the process, or cuts the power, as the plan says.
  void Crash();
  // Cuts the power while the server is down. Requires: the server is down, and its pool is power-safe.
  void CutPower();
  // No crash comes by itself any more.
  void StayUp() { crashes_ = false; }
  // Damages the key's value on the medium if it is settled for good, and returns the value as it was.
  std::optional<std::string> Damage(std::string_view key);
  // Flips a bit of an index entry, and lets the shard work until it has undone the flip. Clients stand still meanwhile:
  // they may see the flipped entry. Returns false if no bit can be flipped now.
  bool FlipIndexBit(Random& random);
  // Flips a bit of an index entry of a closed pool. Clients stand still until the next server has undone the flip.
  // Returns false if no bit can be flipped now.
  bool FlipIndexBitAtRest(Random& random);
  // The disk of a pool with a journal gets all that it waits for.
  void HoldAll() {
    if (plan_.journal && running()) crash_pool_->HoldAll();
  }
  [[nodiscard]] bool running() const { return !listeners_.empty(); }
  std::function<void()> on_power_cut;  // called after a power cut has changed the medium
  // Called in each fence of the server. `ends`: a crash comes before this fence is done.
  std::function<void(bool ends)> on_fence;
  // Returns the latest moment, in milliseconds, that the clock of any server so far may have told to a put.
  [[nodiscard]] uint64_t LatestTime() const;
  // Returns the time of a shard as clients read it. While the server is down, returns the time that they read last.
  [[nodiscard]] uint64_t TimeOf(uint32_t shard) const;
  // Does a part of the work that waits.
  void Step(Random& random);

  // Returns the number of index blocks that were split since the pool was made.
  [[nodiscard]] uint64_t Splits() const;
  // Returns the sum of the counter over all shards, since the first start.
  [[nodiscard]] uint64_t Count(format::Counter counter) const;
  // Returns the reason why the server could not work as told, or nothing.
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
  // Fails if entries for the mirror lack a fence after the zeroes of a region.
  void CheckZeroes(std::span<const std::byte> entries);
  // A mirror of the pool begins, with all of its bytes.
  void BeginMirror();
  // Fails if the mirror of a closed pool is not the same pool.
  void CompareMirror();
  // The power of the primary's machine is cut, and comes back.
  void CutPrimary();
  // The primary's machine is lost, and the mirror takes its place.
  void Promote();
  [[nodiscard]] bool power_safe() const { return plan_.flush_methods[0] != format::FlushMethod::kNone; }
  [[nodiscard]] Result<std::unique_ptr<server::FormattedPool>> OpenPool();
  // Keeps the pool's bytes after the end of the process. The machine goes on.
  void KeepImages();
  // Widens the medium only. The pool does not grow by that.
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
  uint32_t fences_of_split_ = 0;  // the coming fences of a split that is under way
  bool crashes_ = true;
  bool flipped_at_rest_ = false;
  // If true, no client goes on during a fence, and no fence crashes.
  bool alone_ = false;
  // Clients can read the shards' time. While the server starts they cannot, and a power cut may take that time back.
  bool tells_time_ = false;
  // The wall clock when the network began.
  static constexpr uint64_t kWallMicros = 1'000'000'000'000'000;
  // The clock of the server that started last.
  std::optional<ServerTime> time_;
  // The latest time of the servers before it.
  uint64_t latest_micros_ = kWallMicros;
  // By shard: the time that clients read before the last end of the server.
  std::vector<uint64_t> told_;
  // The sum of the steps by which the machine's wall clock was set back.
  uint64_t set_back_ = 0;
  Random crash_random_;
  Random time_random_;
  Random grow_random_;
  server::CrashPool::Images images_;  // the pool's bytes while no server has it open
  // The mirror's pool, if the plan has one.
  std::unique_ptr<server::CrashPool> mirror_;
  uint64_t index_offset_ = 0;  // Of the mirrored pool.
  bool mirror_fails_ = false;  // It may lose its power in each fence.
  server::CrashPool* crash_pool_ = nullptr;
  // The counters of the servers that have ended.
  std::array<uint64_t, static_cast<size_t>(format::Counter::kCount)> before_{};

  std::vector<std::shared_ptr<fabric::Fabric>> fabrics_;  // by port
  std::unique_ptr<server::FormattedPool> pool_;
  std::vector<server::PoolRegions> regions_;  // by port
  std::vector<ShardProcess> shards_;
  std::vector<std::unique_ptr<fabric::Listener>> listeners_;  // by port. Empty: the server does not run
};

}  // namespace erda::sim
