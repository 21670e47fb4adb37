#include "server/cleaning/pages_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hand_clock.h"
#include "nvm/pool.h"
#include "server/cleaner/page_maker.h"
#include "server/store.h"

namespace erda::server {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kMiB = 1 << 20;

int64_t FaultsOfThisThread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// A store over a pool in DRAM, of regions of 8 MiB, with the two sides of its pages. A sanitizer's
// memory beside each page has faults, too.
class PagesAheadNoSanitizerTest : public testing::Test {
 protected:
  PagesAheadNoSanitizerTest() {
    StoreOptions options;
    options.wish = {96 * kMiB, 1, 8 * kMiB, 2 * kMiB, 4096};
    auto pool = nvm::Pool::Open({.path = "dram:", .size = options.wish.pool_size});
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    store_.emplace(options, *std::move(pool));
    Begin(store_->pool().large_pages());
  }
  void Begin(nvm::LargePages large_pages) {
    ahead_.emplace(store_->versions().log(), store_->geometry(), 0, large_pages, clock_, queues_);
    maker_.emplace(store_->pool(), queues_.pages);
  }
  // The cleaner's thread makes all that is ordered.
  void Make() {
    while (maker_->Step()) {
    }
  }
  // Puts this many bytes of values in all. Returns the faults of the puts alone.
  int64_t FaultsOfPuts(uint64_t bytes, bool steps) {
    const std::string value(1000, 'v');
    int64_t faults = 0;
    for (uint64_t put = 0; put < bytes / value.size(); ++put) {
      const int64_t before = FaultsOfThisThread();
      EXPECT_EQ(store_->Inline("key" + std::to_string(put % 16), value).code, Code::kOk);
      faults += FaultsOfThisThread() - before;
      if (steps) {
        ahead_->Step();
        Make();
      }
    }
    return faults;
  }

  // Returns the offset in the pool where the next put goes.
  [[nodiscard]] uint64_t EndOfLog() {
    const log::Tails& tails = store_->versions().log().tails();
    const log::SegmentId open = tails.OpenSegment(0);
    const auto& geometry = store_->geometry();
    return geometry.RegionOffset(open.region) + (open.segment + 1) * geometry.segment_size - tails.RoomLeft(0);
  }
  [[nodiscard]] bool IsInMemory(uint64_t offset, uint64_t size) {
    const std::span<std::byte> bytes = store_->pool().view().bytes.subspan(offset / kPage * kPage, size);
    std::vector<unsigned char> pages((size + kPage - 1) / kPage);
    EXPECT_EQ(::mincore(bytes.data(), bytes.size(), pages.data()), 0);
    return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
  }

  HandClock clock_;
  CleanQueues queues_;
  std::optional<Store> store_;
  std::optional<PagesAhead> ahead_;
  std::optional<PageMaker> maker_;
};

// Through three regions and into a fourth one.
constexpr uint64_t kPut = 28 * kMiB;
// Pages that are not the log's: the index, the region table, the heap.
constexpr int64_t kOtherFaults = 64;

TEST_F(PagesAheadNoSanitizerTest, WithoutItPutsIntoANewPoolMakeThePages) {
  EXPECT_GT(FaultsOfPuts(kPut, false), static_cast<int64_t>(kPut / kPage) / 2);
}

TEST_F(PagesAheadNoSanitizerTest, ThePagesAfterTheEndOfTheLogAreInMemory) {
  ahead_->Begin();
  Make();
  for (int i = 0; i < 20; ++i) {
    (void)FaultsOfPuts(kMiB / 2, true);
    const uint64_t left = store_->geometry().region_size - EndOfLog() % store_->geometry().region_size;
    EXPECT_TRUE(IsInMemory(EndOfLog(), std::min(left, PagesAhead::kAhead - kMiB)));
  }
}

TEST_F(PagesAheadNoSanitizerTest, PutsIntoPagesThatAreReadyDoNotFault) {
  ahead_->Begin();
  Make();
  EXPECT_LT(FaultsOfPuts(kPut, true), kOtherFaults);
}

TEST_F(PagesAheadNoSanitizerTest, PagesAreMadeNoFurtherThanALittleAhead) {
  ahead_->Begin();
  uint64_t ordered = 0;
  while (const auto order = queues_.pages.queue.Pop()) {
    const bool is_log = order->offset >= store_->geometry().regions_offset;
    if (is_log) ordered += order->bytes;
  }
  EXPECT_GE(ordered, PagesAhead::kAhead);
  EXPECT_LE(ordered, PagesAhead::kAhead + 2 * kMiB);
}

// A store into a large page waits while the kernel makes it.
TEST_F(PagesAheadNoSanitizerTest, PagesThatTheLogMayHaveReachedAreNotMade) {
  const uint64_t late = store_->geometry().RegionOffset(2);
  ASSERT_TRUE(queues_.pages.queue.Push({late, 4 * kMiB, 10 * kMiB}));
  queues_.pages.appended = 10 * kMiB - kMiB / 2;
  Make();
  EXPECT_FALSE(IsInMemory(late, kPage));
  EXPECT_TRUE(IsInMemory(late + 2 * kMiB, 2 * kMiB));  // the log is there after 2 MiB more
}

TEST_F(PagesAheadNoSanitizerTest, AFullQueueOfOrdersLosesNoPages) {
  ahead_->Begin();
  while (queues_.pages.queue.Push({0, 1})) {
  }
  (void)FaultsOfPuts(2 * kMiB, false);
  ahead_->Step();  // finds no room
  Make();
  (void)FaultsOfPuts(kMiB, false);
  ahead_->Step();
  Make();
  EXPECT_LT(FaultsOfPuts(kPut / 2, true), kOtherFaults);
}

TEST_F(PagesAheadNoSanitizerTest, OrdersStayInTheShardsRegions) {
  ahead_->Begin();
  const auto& geometry = store_->geometry();
  for (int i = 0; i < 60; ++i) {
    (void)FaultsOfPuts(kMiB, false);
    if (store_->versions().log().regions().free_regions() == 1) break;
    ahead_->Step();
    while (const auto order = queues_.pages.queue.Pop()) {
      EXPECT_GT(order->bytes, 0);
      EXPECT_LE(order->offset + order->bytes, geometry.pool_size);
      if (order->offset < geometry.regions_offset) continue;  // the index
      const uint64_t in_region = (order->offset - geometry.regions_offset) % geometry.region_size;
      EXPECT_LE(in_region + order->bytes, geometry.region_size);
    }
  }
}

// --- A log in a file on a disk. The orders count here, and not what the kernel makes of them.

class PagesAheadOnDiskNoSanitizerTest : public PagesAheadNoSanitizerTest {
 protected:
  PagesAheadOnDiskNoSanitizerTest() {
    Begin(nvm::LargePages::kOnDisk);
    ahead_->Begin();
  }
  // Puts values at this many bytes in a second, and adds what is ordered to the members.
  void PutAtPace(uint64_t bytes, uint64_t pace) {
    constexpr uint64_t kStep = kMiB / 16;
    for (uint64_t at = 0; at < bytes; at += kStep) {
      (void)FaultsOfPuts(kStep, false);
      clock_.now += Nanoseconds(std::chrono::seconds(1)) * kStep / pace;
      ahead_->Step();
      while (const auto order = queues_.pages.queue.Pop()) {
        (order->work == PageOrder::Work::kEnlarge ? enlarged_ : made_).push_back(*order);
        made_first_ = made_first_ || enlarged_.empty();
      }
    }
  }
  [[nodiscard]] uint64_t Region(uint64_t i) const { return store_->geometry().RegionOffset(static_cast<uint32_t>(i)); }

  std::vector<PageOrder> enlarged_;
  std::vector<PageOrder> made_;
  bool made_first_ = false;  // Pages were ordered that nobody had enlarged.
};

TEST_F(PagesAheadOnDiskNoSanitizerTest, ASlowLogGetsNoLargePages) {
  PutAtPace(20 * kMiB, PagesAhead::kPaceOnDisk / 2);
  EXPECT_TRUE(enlarged_.empty());
  EXPECT_TRUE(made_.empty());
}

TEST_F(PagesAheadOnDiskNoSanitizerTest, AFastLogEnlargesTheRestOfItsRegionAndTheNextOnesWhole) {
  PutAtPace(12 * kMiB, PagesAhead::kPaceOnDisk * 4);
  ASSERT_EQ(enlarged_.size(), 3);
  EXPECT_FALSE(made_first_);
  const uint64_t first = enlarged_[0].offset;
  EXPECT_GT(first, Region(0));
  EXPECT_LE(first, Region(0) + 2 * kMiB);
  EXPECT_EQ(first + enlarged_[0].bytes, Region(1));
  for (const uint64_t i : {1, 2}) {
    EXPECT_EQ(enlarged_[i].offset, Region(i));
    EXPECT_EQ(enlarged_[i].bytes, 8 * kMiB);
  }
  EXPECT_FALSE(made_.empty());
}

TEST_F(PagesAheadOnDiskNoSanitizerTest, ALogThatBecomesFastEnlargesWhatIsLeft) {
  PutAtPace(4 * kMiB, PagesAhead::kPaceOnDisk / 2);
  PutAtPace(2 * kMiB, PagesAhead::kPaceOnDisk * 4);
  ASSERT_FALSE(enlarged_.empty());
  EXPECT_GE(enlarged_[0].offset, Region(0) + 4 * kMiB);
}

TEST_F(PagesAheadOnDiskNoSanitizerTest, ALogThatBecomesSlowOrdersNoMore) {
  PutAtPace(4 * kMiB, PagesAhead::kPaceOnDisk * 4);
  const size_t ordered = enlarged_.size() + made_.size();
  PutAtPace(20 * kMiB, PagesAhead::kPaceOnDisk / 2);
  EXPECT_LE(enlarged_.size() + made_.size(), ordered + 1);  // the first look still sees the fast puts
}

TEST_F(PagesAheadOnDiskNoSanitizerTest, TheIndexKeepsSmallPages) {
  PutAtPace(20 * kMiB, PagesAhead::kPaceOnDisk * 4);
  for (const auto* const orders : {&enlarged_, &made_}) {
    for (const PageOrder& order : *orders) EXPECT_GE(order.offset, store_->geometry().regions_offset);
  }
}

TEST(PagesAheadOfAMediumTest, APoolWithoutLargePagesGetsNoOrders) {
  Store store;
  CleanQueues queues;
  PagesAhead ahead(store.versions().log(), store.geometry(), 0, nvm::LargePages::kNone, SteadyClock::Instance(),
                   queues);
  ahead.Begin();
  ahead.Step();
  EXPECT_FALSE(queues.pages.queue.Pop());
}

}  // namespace
}  // namespace erda::server
