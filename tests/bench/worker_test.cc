#include "bench/ycsb/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/ycsb/store.h"
#include "bench/ycsb/workload.h"

namespace erda::bench {
namespace {

// A store in memory that remembers its requests. At most `most` are in flight; the last one ends first.
class MemoryStore : public Store {
 public:
  explicit MemoryStore(size_t most) : most_(most) {}

  Result<size_t> Get(std::string_view key, std::span<std::byte> out) override {
    gets.emplace_back(key);
    const auto found = values_.find(key);
    if (found == values_.end()) return Status(Code::kNotFound);
    std::copy_n(std::as_bytes(std::span(found->second)).begin(), std::min(out.size(), found->second.size()),
                out.begin());
    return found->second.size();
  }
  Status Put(std::string_view key, std::string_view value) override {
    puts.emplace_back(key);
    values_.insert_or_assign(std::string(key), value);
    return {};
  }
  Status GetAsync(std::string_view key, GetCallback done) override {
    if (ends_.size() == most_) return Status(Code::kResourceExhausted);
    gets.emplace_back(key);
    ends_.emplace_back([this, key = std::string(key), done = std::move(done)] {
      const auto found = values_.find(key);
      if (found == values_.end()) return done(Status(Code::kNotFound));
      done(std::string_view(found->second));
    });
    return {};
  }
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) override {
    if (ends_.size() == most_) return Status(Code::kResourceExhausted);
    ++async_puts;
    (void)Put(key, value);
    ends_.emplace_back([done = std::move(done)] { done(Status()); });
    return {};
  }
  size_t Poll() override {
    auto ends = std::exchange(ends_, {});
    std::reverse(ends.begin(), ends.end());
    for (const auto& end : ends) end();
    return ends.size();
  }
  [[nodiscard]] size_t max_value_bytes(size_t /*key_bytes*/) const override { return 1024; }

  std::vector<std::string> gets;
  std::vector<std::string> puts;
  size_t async_puts = 0;

 private:
  const size_t most_;
  std::map<std::string, std::string, std::less<>> values_;
  std::vector<std::function<void()>> ends_;
};

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() { settings_.warm_up = 50; }

  void Begin(std::string_view workload, uint64_t operations, uint32_t depth) {
    Begin(workload, operations, depth, operations + settings_.warm_up);
  }
  void Begin(std::string_view workload, uint64_t operations, uint32_t depth, uint64_t most_inserts) {
    settings_.workload = *FindWorkload(workload);
    settings_.records = 100;
    settings_.operations = operations;
    settings_.depth = depth;
    settings_.value_size = 32;
    settings_.verify = true;
    inserts_ = std::make_unique<Inserts>(settings_.records, most_inserts);
    auto store = std::make_unique<MemoryStore>(std::max(depth, kLoadDepth));
    store_ = store.get();
    worker_ = std::make_unique<Worker>(settings_, values_, *inserts_, failures_, 0, std::move(store));
    Do(Stage::kLoad);
  }
  // Runs the stage, and collects its requests.
  void Do(Stage stage) {
    worker_->Prepare(stage);
    store_->gets.clear();
    store_->puts.clear();
    worker_->Run();
    ASSERT_EQ(failures_.count(), 0U) << failures_.first();
  }

  Settings settings_;
  const Values values_{32};
  Failures failures_;
  std::unique_ptr<Inserts> inserts_;
  MemoryStore* store_ = nullptr;
  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerTest, LoadsEachRecordOnce) {
  Begin("C", 1, 1);
  EXPECT_EQ(store_->puts.size(), settings_.records);
  EXPECT_EQ(std::set<std::string>(store_->puts.begin(), store_->puts.end()).size(), settings_.records);
}

TEST_F(WorkerTest, DoesTheRequestedNumberOfOperations) {
  for (const char* workload : {"A", "B", "C", "D", "F", "rmw", "update"}) {
    for (const uint32_t depth : {1U, 8U}) {
      for (const uint64_t drawn_most : {uint64_t{1}, uint64_t{7}, uint64_t{1000}, uint64_t{100'000}}) {
        settings_.drawn_most = drawn_most;
        Begin(workload, 1000, depth);
        for (const Stage stage : {Stage::kWarmUp, Stage::kRun}) {
          Do(stage);
          const uint64_t asked = stage == Stage::kRun ? 1000 : 50;
          EXPECT_EQ(worker_->done(), asked) << workload << " depth " << depth << " drawn " << drawn_most;
          const bool both = std::string_view(workload) == "F" ||
                            std::string_view(workload) == "rmw";  // A read-modify-write is one operation.
          EXPECT_EQ(both ? store_->gets.size() : store_->gets.size() + store_->puts.size(), asked) << workload;
          EXPECT_EQ(worker_->measured().get.count(), store_->gets.size());
          EXPECT_EQ(worker_->measured().put.count(), store_->puts.size());
        }
      }
    }
  }
}

TEST_F(WorkerTest, ResultsDoNotDependOnTheNumberDrawnBefore) {
  std::vector<std::string> all;
  for (const uint64_t drawn_most : {uint64_t{100'000}, uint64_t{300}, uint64_t{1}, uint64_t{0}}) {
    settings_.drawn_most = drawn_most;
    Begin("C", 1000, 1);
    Do(Stage::kWarmUp);
    Do(Stage::kRun);
    if (all.empty()) all = store_->gets;
    EXPECT_EQ(store_->gets, all) << drawn_most;
  }
  EXPECT_EQ(all.size(), 1000U);
  EXPECT_GT(std::set<std::string>(all.begin(), all.end()).size(), 40U);
}

TEST_F(WorkerTest, TheRunDoesNotRepeatTheWarmUp) {
  Begin("C", 50, 1);
  Do(Stage::kWarmUp);
  const auto warm = store_->gets;
  Do(Stage::kRun);
  EXPECT_NE(store_->gets, warm);
}

TEST_F(WorkerTest, LoadOneByOneUsesTheSynchronousCall) {
  settings_.load_depth = 1;
  Begin("C", 1, 1);
  EXPECT_EQ(std::set<std::string>(store_->puts.begin(), store_->puts.end()).size(), settings_.records);
  EXPECT_EQ(store_->async_puts, 0U);
  settings_.load_depth = 2;
  Begin("C", 1, 1);
  EXPECT_EQ(store_->async_puts, settings_.records);
}

TEST_F(WorkerTest, RunEndsAfterItsTime) {
  for (const uint32_t depth : {1U, 8U}) {
    Begin("A", 1'000'000'000, depth, /*most_inserts=*/0);
    settings_.seconds = 0.02;
    const auto begin = Worker::Clock::now();
    Do(Stage::kRun);
    EXPECT_GE(Worker::Clock::now() - begin, std::chrono::milliseconds(20));
    EXPECT_GT(worker_->done(), 0U);
    EXPECT_LT(worker_->done(), 1'000'000'000U);
    EXPECT_EQ(worker_->measured().get.count() + worker_->measured().put.count(), worker_->done());
    settings_.seconds = 0;
  }
}

TEST_F(WorkerTest, OperationsMayEndBeforeTheTime) {
  settings_.seconds = 3600;
  Begin("A", 100, 1);
  Do(Stage::kWarmUp);
  Do(Stage::kRun);
  EXPECT_EQ(worker_->done(), 100U);
}

TEST(SettingsTest, FirstThreadsWriteAndTheOthersRead) {
  Settings settings;
  settings.workload = *FindWorkload("A");
  EXPECT_EQ(settings.WorkloadOf(1).update_percent, 50U);
  settings.workload.distribution = Distribution::kUniform;
  settings.writers = 2;
  for (const uint32_t thread : {0U, 1U, 2U, 3U}) {
    const Workload workload = settings.WorkloadOf(thread);
    EXPECT_EQ(workload.update_percent, thread < 2 ? 100U : 0U);
    EXPECT_EQ(workload.get_percent(), thread < 2 ? 0U : 100U);
    EXPECT_EQ(workload.distribution, Distribution::kUniform);
  }
}

TEST_F(WorkerTest, InsertsAreOfNewRecords) {
  settings_.drawn_most = 10;
  Begin("D", 2000, 4);
  std::set<std::string> all(store_->puts.begin(), store_->puts.end());
  Do(Stage::kRun);
  EXPECT_GT(store_->puts.size(), 50U);
  for (const std::string& key : store_->puts) EXPECT_TRUE(all.insert(key).second) << key;
}

}  // namespace
}  // namespace erda::bench
