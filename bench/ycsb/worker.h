// One thread of the benchmark: its connection to the store, its operations, and its results.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ycsb/histogram.h"
#include "bench/ycsb/store.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

inline constexpr uint32_t kLoadDepth = 16;

struct Settings {
  std::string scheme = "erda";  // As OpenStore names them.
  std::string address;
  ClientOptions client;
  Workload workload{};
  uint64_t records = 100'000;
  uint64_t operations = 1'000'000;
  uint64_t warm_up = 0;  // Operations before those.
  uint64_t value_size = 1024;
  uint32_t threads = 1;
  uint32_t depth = 1;
  // At least as many puts are in flight in the load.
  uint32_t load_depth = kLoadDepth;
  // If it is not 0, this number of threads update, and the others get. The workload then only chooses the records.
  uint32_t writers = 0;
  double seconds = 0;  // The run ends after this time, even if operations are left. 0: it does not.
  uint64_t seed = 1;
  bool load = true;
  bool run = true;
  bool verify = false;
  uint64_t drawn_most = uint64_t{1} << 22;  // Operations drawn before they are timed, over all workers: 160 MiB.

  // Returns the workload of one thread.
  [[nodiscard]] Workload WorkloadOf(uint32_t thread) const;
  [[nodiscard]] uint32_t queue_depth() const { return std::max({depth, load_depth, 1U}); }
};

// The first failure ends the run for every thread. Any number of threads may use it.
class Failures {
 public:
  void Add(std::string message);
  // Returns true if a thread failed; then all must stop.
  [[nodiscard]] bool any() const { return any_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t count() const;
  [[nodiscard]] std::string first() const;

 private:
  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;
  uint64_t count_ = 0;
  std::string first_;
};

struct Measured {
  // A read-modify-write counts in all three: its get, its put, and the whole.
  Histogram get;
  Histogram put;
  Histogram rmw;
  uint64_t not_found = 0;

  void Merge(const Measured& other);
};

// In kLoad a worker puts its share of the records. In the other stages it does its share of the operations. Only kRun
// is reported.
enum class Stage : uint8_t { kLoad, kWarmUp, kRun };

// One thread at a time uses a Worker, except for done().
class Worker {
 public:
  using Clock = std::chrono::steady_clock;

  // Requires: all arguments that are references outlive the worker.
  Worker(const Settings& settings, const Values& values, Inserts& inserts, Failures& failures, uint32_t index,
         std::unique_ptr<Store> store);

  // Draws the stage's operations, up to drawn_most over all workers, so that the timed part does not include drawing.
  // The run itself draws operations beyond that, and operations that depend on other threads' inserts.
  void Prepare(Stage stage);
  // Does the prepared operations.
  void Run();

  [[nodiscard]] uint64_t done() const { return done_.load(std::memory_order_relaxed); }  // Operations of this stage.
  [[nodiscard]] const Measured& measured() const { return measured_; }
  [[nodiscard]] Store& store() { return *store_; }  // Requires: the worker is idle.

 private:
  struct PreparedOp {
    Op op;
    Key key;
  };
  // One operation in flight. `step` is the step to be started, or the one that was started last.
  enum class Step : uint8_t { kNext, kGet, kPut };
  struct Slot {
    Step step = Step::kNext;
    PreparedOp prepared{};
    Clock::time_point start;      // Of the step.
    Clock::time_point rmw_start;  // Of a read-modify-write.
  };

  // Returns the beginning of this worker's part of `total` things.
  [[nodiscard]] uint64_t ShareBegin(uint64_t total, uint32_t index) const;
  void Draw(uint64_t count);
  // Returns false if no operation is left.
  bool TakeOp(PreparedOp& prepared);
  [[nodiscard]] std::string_view MakeValue(uint64_t record);

  void RunOneByOne();
  bool GetNow(const PreparedOp& prepared, Clock::time_point start);
  bool PutNow(const PreparedOp& prepared);

  void RunPipelined(uint32_t depth);
  // Starts the slot's step, or its next operation. Returns false if the store takes no more now; then call it again.
  bool StartStep(size_t slot);
  void StartOrWait(size_t slot);
  void FinishGet(size_t slot, const Result<std::string_view>& value);
  void FinishPut(size_t slot, const Status& status);

  // Count every finished get and put. Return false after a failure.
  bool CountGet(const PreparedOp& prepared, const Status& status, std::string_view value, Clock::time_point start);
  bool CountPut(const PreparedOp& prepared, const Status& status, Clock::time_point start);
  void CountOp();
  void Fail(const char* action, const PreparedOp& prepared, const std::string& why);

  const Settings& settings_;
  const Values& values_;
  Inserts& inserts_;
  Failures& failures_;
  const uint32_t index_;
  const std::unique_ptr<Store> store_;
  OpSource source_;

  Stage stage_ = Stage::kLoad;
  uint64_t next_record_ = 0;  // The next record to load.
  uint64_t left_ = 0;         // Operations of this stage that are not taken yet.
  std::vector<PreparedOp> drawn_;
  size_t next_drawn_ = 0;
  Clock::time_point end_ = Clock::time_point::max();  // No operation starts later.
  std::string put_buffer_;
  std::string get_buffer_;
  uint64_t sequence_ = 0;

  std::vector<Slot> slots_;
  std::vector<size_t> waiting_;  // Slots whose start was refused.
  size_t in_flight_ = 0;

  Clock::time_point now_;  // Read once for each operation: its end is the start of the next one.
  Measured measured_;
  alignas(64) std::atomic<uint64_t> done_ = 0;
};

}  // namespace erda::bench
