#include "server/pool/syncer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "server/page_pool.h"

namespace erda::server {
namespace {

using format::Counter;

constexpr uint64_t kSyncedBytes = 256 << 10;

class SyncerTest : public testing::Test {
 protected:
  SyncerTest() : control_(sizeof(format::ControlBlock) / sizeof(uint64_t)) {
    auto pool = std::make_unique<PagePool>(PagePool::Image(kSyncedBytes / sizeof(uint64_t)), true, kBoot);
    medium_ = pool.get();
    formatted_ = FormattedPool::Take(std::move(pool), {}, {kSyncedBytes, 1}).value();
    EXPECT_TRUE(formatted_->MarkOpen().ok());
    syncer_ = std::make_unique<Syncer>(
        *formatted_, std::chrono::milliseconds(1), counters(), [this] { return changes_.load(); },
        [this](std::string_view line) { told_.emplace_back(line); });
  }
  [[nodiscard]] Counters counters() { return Counters(std::as_writable_bytes(std::span(control_))); }
  // Reports another change each time that the syncer looks.
  void ChangeUntil(Counter counter, uint64_t n) {
    while (counters().Get(counter) < n) {
      ++changes_;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::vector<uint64_t> control_;
  PagePool* medium_ = nullptr;
  std::unique_ptr<FormattedPool> formatted_;
  std::atomic<uint64_t> changes_ = 0;
  std::vector<std::string> told_;  // The syncer's thread fills it while that runs.
  std::unique_ptr<Syncer> syncer_;
};

TEST_F(SyncerTest, WritesThePoolToItsDiskWhileThereAreChanges) {
  nvm::Writer(formatted_->pool()).Store64(kSyncedBytes / 2, 77);
  ASSERT_NE(medium_->disk(), medium_->cached());
  ASSERT_TRUE(syncer_->Start().ok());
  ChangeUntil(Counter::kSyncs, 3);
  syncer_->Stop();
  EXPECT_EQ(medium_->disk(), medium_->cached());
  EXPECT_GT(counters().Get(Counter::kSyncedAt), 0U);
  EXPECT_FALSE(syncer_->failed());
  EXPECT_TRUE(told_.empty());
}

TEST_F(SyncerTest, WithoutChangesItLeavesTheDiskAlone) {
  int syncs = 0;
  medium_->on_sync = [&] { ++syncs; };
  ASSERT_TRUE(syncer_->Start().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  syncer_->Stop();
  EXPECT_EQ(syncs, 0);
}

TEST_F(SyncerTest, FailureIsReportedOnceAndLaterSyncsDoNotMendIt) {
  medium_->fails = true;
  ASSERT_TRUE(syncer_->Start().ok());
  ChangeUntil(Counter::kSyncFailures, 3);
  syncer_->Stop();
  EXPECT_TRUE(syncer_->failed());
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NE(told_.front().find("no later sync can prove"), std::string::npos) << told_.front();
  EXPECT_EQ(counters().Get(Counter::kSyncs), 0U);
  // Later syncs succeed. The next start still verifies the pool in full, also in the same boot.
  EXPECT_EQ(formatted_->superblock().clean, 0U);
  EXPECT_EQ(formatted_->superblock().boot, format::kUnvouchedBoot);
}

// The kernel tells an error once, and only the mark keeps it. So the mark must reach the disk, however late.
TEST_F(SyncerTest, FailedMarkIsRetriedUntilItIsOnTheDisk) {
  std::atomic<int> writes{0};
  medium_->on_sync = [&] { ++writes; };
  medium_->fails = true;
  ASSERT_TRUE(syncer_->Start().ok());
  ChangeUntil(Counter::kSyncFailures, 2);
  const int before = writes;
  while (writes < before + 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // without changes
  const auto on_disk = [&] { return format::FindSuperblock(std::as_bytes(std::span(medium_->disk())))->superblock; };
  syncer_->Stop();
  EXPECT_EQ(on_disk().boot, kBoot);
  const uint64_t generation = on_disk().generation;

  Syncer next(*formatted_, std::chrono::milliseconds(1), counters(), [this] { return changes_.load(); }, {});
  ASSERT_TRUE(next.Start().ok());
  ChangeUntil(Counter::kSyncFailures, counters().Get(Counter::kSyncFailures) + 1);
  medium_->fails = false;
  ChangeUntil(Counter::kSyncs, 1);
  next.Stop();
  EXPECT_EQ(on_disk().boot, format::kUnvouchedBoot);
  EXPECT_EQ(on_disk().generation, generation + 1) << "always the same copy: the other one may be all that the disk has";
}

TEST_F(SyncerTest, StoresBeforeTheStartAreSyncedWithoutFurtherChanges) {
  nvm::Writer(formatted_->pool()).Store64(kSyncedBytes / 2, 77);
  ASSERT_TRUE(syncer_->Start(true).ok());
  while (counters().Get(Counter::kSyncs) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  syncer_->Stop();
  EXPECT_EQ(medium_->disk(), medium_->cached());
  EXPECT_EQ(counters().Get(Counter::kSyncs), 1U) << "once";
}

// A sync that throws may have failed before, and no later sync tells its error.
TEST_F(SyncerTest, SyncWithoutMemoryCountsAsFailedAndIsReportedLater) {
  medium_->on_sync = [] { throw std::bad_alloc(); };
  int tries = 0;
  Syncer syncer(
      *formatted_, std::chrono::milliseconds(1), counters(), [this] { return changes_.load(); },
      [&](std::string_view line) {
        if (++tries < 3) throw std::bad_alloc();
        told_.emplace_back(line);
      });
  ASSERT_TRUE(syncer.Start().ok());
  ChangeUntil(Counter::kSyncFailures, 5);
  syncer.Stop();
  EXPECT_TRUE(syncer.failed());
  EXPECT_EQ(tries, 3);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NE(told_.front().find("no later sync can prove"), std::string::npos) << told_.front();
}

}  // namespace
}  // namespace erda::server
