// A pool in an ordinary file after a power cut: any mixture of pages, with the synced ones.
#include "server/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "nvm/writer.h"
#include "server/pool/formatted_pool.h"

namespace erda::server {
namespace {

constexpr uint64_t kPagePoolBytes = 256 << 10;
constexpr uint64_t kGrownBytes = 384 << 10;
// Index and log. A smaller pool does not need the bytes before and after them, which growth changes.
constexpr uint64_t kDataFrom = 32 << 10;
constexpr uint64_t kDataTo = 192 << 10;
constexpr format::BootId kFirstBoot{1};
constexpr format::BootId kNextBoot{2};

struct PowerCut {};

class PagePoolTest : public testing::Test {
 protected:
  Result<std::unique_ptr<FormattedPool>> Take(PagePool::Image image, bool created, const format::BootId& boot) {
    auto pool = std::make_unique<PagePool>(std::move(image), created, boot);
    medium_ = pool.get();
    medium_->on_sync = [this] { MayCut(); };
    return FormattedPool::Take(std::move(pool), {},
                               created ? format::GeometryWish{kPagePoolBytes, 1} : format::GeometryWish{0, 0});
  }
  // Cuts the power at the place with the number `cut_`.
  void MayCut() {
    if (step_++ == cut_) {
      left_ = medium_->AfterPowerCut(random_, random_.Chance(0.5) ? 0.5 : 0.0);
      throw PowerCut();
    }
    if (random_.Chance(0.3)) medium_->WriteBackSome(random_);
  }
  // Changes a pool as a server does, in small.
  void Fill(FormattedPool& formatted) {
    nvm::Writer writer(formatted.pool());
    for (uint64_t at = kDataFrom; at < kDataTo; at += PagePool::kPage) {
      writer.Store64(at, writer.Load64(at) + 1);
      writer.Store64(at + 2048, at);
      MayCut();
    }
  }
  [[nodiscard]] static PagePool::Image DataOf(const PagePool::Image& image) {
    return {image.begin() + kDataFrom / sizeof(uint64_t), image.begin() + kDataTo / sizeof(uint64_t)};
  }

  Random random_{1};
  PagePool* medium_ = nullptr;
  PagePool::Image left_;  // the disk after the power cut
  int cut_ = 0;
  int step_ = 0;
};

// Creation, a first run, growth and a second run, cut off at each of their steps. A pool that says "closed cleanly" has
// every byte that it had when it was marked.
TEST_F(PagePoolTest, NoMixtureOfPagesIsClosedCleanlyWithoutItsData) {
  int clean = 0;
  int unsure = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    bool ended = false;
    for (cut_ = 0; !ended; ++cut_) {
      random_ = Random(seed * 1000 + static_cast<uint64_t>(cut_));
      step_ = 0;
      // The data of a pool that says that it is clean.
      std::vector<PagePool::Image> whole;
      // The pool may have acknowledged puts since its last clean mark.
      bool in_use = false;
      std::unique_ptr<FormattedPool> disk;
      try {
        whole.push_back(DataOf(PagePool::Image(kPagePoolBytes / sizeof(uint64_t))));
        auto formatted = Take(PagePool::Image(kPagePoolBytes / sizeof(uint64_t)), true, kFirstBoot);
        ASSERT_TRUE(formatted.ok()) << formatted.status().ToString();
        disk = *std::move(formatted);
        ASSERT_EQ(medium_->names_synced, 1);
        for (const bool grows : {true, false}) {
          ASSERT_TRUE(disk->MarkOpen().ok());
          in_use = true;
          Fill(*disk);
          whole.assign(1, DataOf(medium_->cached()));
          in_use = false;
          ASSERT_TRUE(disk->MarkClosed().ok());
          MayCut();
          if (!grows) continue;
          ASSERT_TRUE(disk->Grow(kGrownBytes).ok());
        }
        ended = true;
        left_ = medium_->disk();
      } catch (const PowerCut&) {
      }
      step_ = cut_ + 1;  // no further cut
      auto next = Take(left_, false, kNextBoot);
      if (!next.ok()) {
        // Creation had not returned.
        ASSERT_EQ(disk, nullptr) << "seed " << seed << ", step " << cut_ << ": " << next.status().ToString();
        continue;
      }
      ++((*next)->needs_recovery() ? unsure : clean);
      ASSERT_EQ((*next)->needs_verification(), (*next)->needs_recovery());
      if ((*next)->needs_recovery()) continue;
      ASSERT_FALSE(in_use) << "seed " << seed << ", step " << cut_;
      const PagePool::Image data = DataOf(medium_->cached());
      const bool found = std::find(whole.begin(), whole.end(), data) != whole.end();
      ASSERT_TRUE(found) << "seed " << seed << ", step " << cut_;
    }
  }
  EXPECT_GT(clean, 200);
  EXPECT_GT(unsure, 200);
}

// A process that dies leaves the page cache to the next one, which finds all bytes.
TEST_F(PagePoolTest, OnlyAnotherBootNeedsVerification) {
  cut_ = -1;
  auto formatted = Take(PagePool::Image(kPagePoolBytes / sizeof(uint64_t)), true, kFirstBoot);
  ASSERT_TRUE(formatted.ok());
  ASSERT_TRUE((*formatted)->MarkOpen().ok());
  const PagePool::Image left = medium_->cached();
  const auto needs = [&](const format::BootId& boot) {
    auto next = Take(left, false, boot);
    EXPECT_TRUE(next.ok() && (*next)->needs_recovery());
    return (*next)->needs_verification();
  };
  EXPECT_FALSE(needs(kFirstBoot));
  EXPECT_TRUE(needs(kNextBoot));
  EXPECT_TRUE(needs({}));  // an unknown boot

  // From the mark of the next server on, the pool belongs to that boot.
  auto next = Take(left, false, kNextBoot);
  ASSERT_TRUE((*next)->MarkOpen().ok());
  auto after = Take(medium_->cached(), false, kNextBoot);
  EXPECT_TRUE((*after)->needs_recovery());
  EXPECT_FALSE((*after)->needs_verification());
}

// The last server of the pool had an ordinary file, which lost power. Then the file moved to a file system on NVM.
TEST_F(PagePoolTest, PoolThatLostPagesIsVerifiedOnNvm) {
  cut_ = -1;
  auto formatted = Take(PagePool::Image(kPagePoolBytes / sizeof(uint64_t)), true, kFirstBoot);
  ASSERT_TRUE((*formatted)->MarkOpen().ok());
  PagePool::Image left = medium_->cached();
  const auto on_nvm = [&] {
    auto pool = std::make_unique<PagePool>(left, left, false, format::kNoBoot, nvm::Durability::kPowerSafe);
    medium_ = pool.get();
    return *FormattedPool::Take(std::move(pool), {}, {});
  };
  EXPECT_TRUE(on_nvm()->needs_verification());
  // A sync failed there, or the machine did not tell its boot.
  auto next = Take(left, false, kFirstBoot);
  ASSERT_TRUE((*next)->MarkUnvouched().ok());
  left = medium_->cached();
  EXPECT_TRUE(on_nvm()->needs_verification());
  next = Take(left, false, format::kNoBoot);
  ASSERT_TRUE((*next)->MarkOpen().ok());
  left = medium_->cached();
  EXPECT_TRUE(on_nvm()->needs_verification());
  // From the next mark on, the pool belongs to NVM.
  const auto served = on_nvm();
  ASSERT_TRUE(served->MarkOpen().ok());
  left = medium_->cached();
  EXPECT_TRUE(on_nvm()->needs_recovery());
  EXPECT_FALSE(on_nvm()->needs_verification());
}

TEST_F(PagePoolTest, AFailedSyncLeavesNoCleanMark) {
  cut_ = -1;
  auto formatted = Take(PagePool::Image(kPagePoolBytes / sizeof(uint64_t)), true, kFirstBoot);
  ASSERT_TRUE((*formatted)->MarkOpen().ok());
  medium_->fails = true;
  EXPECT_EQ((*formatted)->MarkClosed().code(), Code::kUnavailable);
  EXPECT_EQ((*formatted)->superblock().clean, 0U);
  // The boot is the same, but the page cache may have dropped pages that could not be written.
  medium_->fails = false;
  ASSERT_TRUE((*formatted)->MarkUnvouched().ok());
  auto next = Take(medium_->cached(), false, kFirstBoot);
  EXPECT_TRUE((*next)->needs_verification());
}

TEST_F(PagePoolTest, AFailedSyncOfTheMarkRefusesTheStart) {
  cut_ = -1;
  auto formatted = Take(PagePool::Image(kPagePoolBytes / sizeof(uint64_t)), true, kFirstBoot);
  medium_->fails = true;
  EXPECT_EQ((*formatted)->MarkOpen().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace erda::server
