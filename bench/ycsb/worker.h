// One thread of the benchmark: its connection to the store, its operations, what it measured.
#pragma once

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

struct Settings {
  std::string scheme = "erda";  // as OpenStore names them
  std::string address;
  ClientOptions client;
  Workload workload{};
  uint64_t records = 100'000;
  uint64_t operations = 1'000'000;
  uint64_t warm_up = 0;  // operations before those
  uint64_t value_size = 1024;
  uint32_t threads = 1;
  uint32_t depth = 1;
  uint64_t seed = 1;
  bool load = true;
  bool verify = false;
  uint64_t drawn_most = uint64_t{1} << 22;  // operations drawn before they are timed, over all workers: 160 MiB
};

// The load phase keeps at least this many puts in flight.
inline constexpr uint32_t kLoadDepth = 16;

// The first failure ends the run for every thread. For any number of threads.
class Failures {
 public:
  void Add(std::string message);
  // Some thread failed: stop.
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

// kLoad puts this worker's share of the records; the others do its share of the operations. Only those of kRun are to
// be reported.
enum class Stage : uint8_t { kLoad, kWarmUp, kRun };

// All but done() is for one thread at a time.
class Worker {
 public:
  using Clock = std::chrono::steady_clock;

  // What is passed by reference outlives it.
  Worker(const Settings& settings, const Values& values, Inserts& inserts, Failures& failures, uint32_t index,
         std::unique_ptr<Store> store);

  // Draws the stage's operations, so that the store is timed and not the drawing: up to drawn_most over all workers.
  // What comes after those, and what must follow other threads' inserts, is drawn on the way.
  void Prepare(Stage stage);
  // Does what was prepared.
  void Run();

  [[nodiscard]] uint64_t done() const { return done_.load(std::memory_order_relaxed); }  // of the stage
  [[nodiscard]] const Measured& measured() const { return measured_; }
  [[nodiscard]] Store& store() { return *store_; }  // while it does nothing

 private:
  struct PreparedOp {
    Op op;
    Key key;
  };
  // One operation in flight. `step` is what of it is to be started, or was started last.
  enum class Step : uint8_t { kNext, kGet, kPut };
  struct Slot {
    Step step = Step::kNext;
    PreparedOp prepared{};
    Clock::time_point start;      // of the step
    Clock::time_point rmw_start;  // of a read-modify-write
  };

  // This worker's part of `total` things.
  [[nodiscard]] uint64_t ShareBegin(uint64_t total, uint32_t index) const;
  void Draw(uint64_t count);
  // False when there is none left.
  bool TakeOp(PreparedOp& prepared);
  [[nodiscard]] std::string_view MakeValue(uint64_t record);

  void RunOneByOne();
  bool GetNow(const PreparedOp& prepared, Clock::time_point start);
  bool PutNow(const PreparedOp& prepared);

  void RunPipelined(uint32_t depth);
  // Starts the slot's step, or its next operation. False if the store takes no more now: to be repeated.
  bool StartStep(size_t slot);
  void StartOrWait(size_t slot);
  void FinishGet(size_t slot, const Result<std::string_view>& value);
  void FinishPut(size_t slot, const Status& status);

  // What every finished get and put goes through. False after a failure.
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
  uint64_t next_record_ = 0;  // to load
  uint64_t left_ = 0;         // operations of this stage not yet taken
  std::vector<PreparedOp> drawn_;
  size_t next_drawn_ = 0;
  std::string put_buffer_;
  std::string get_buffer_;
  uint64_t sequence_ = 0;

  std::vector<Slot> slots_;
  std::vector<size_t> waiting_;  // slots whose start was refused
  size_t in_flight_ = 0;

  Clock::time_point now_;  // The clock is read once for an operation: its end is the start of the next.
  Measured measured_;
  alignas(64) std::atomic<uint64_t> done_ = 0;
};

}  // namespace erda::bench
