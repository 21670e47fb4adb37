// The time and the numbers of versions on a pool with a journal. No shard tells them before the medium holds their
// limits.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/random.h"
#include "base/server_time.h"
#include "format/control_block.h"
#include "format/version_limit.h"
#include "server/control/expiry_clock.h"
#include "server/crash_pool.h"
#include "server/pool/version_numbers.h"

namespace erda::server {
namespace {

constexpr uint64_t kMilli = 1'000'000;  // In nanoseconds.

class HeldLaterTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 64 << 10;
  static constexpr uint64_t kAhead = 10;

  // Returns the shard's record as a power cut would leave it now.
  [[nodiscard]] format::ShardRecord OnDisk() const {
    Random random(1);
    const CrashPool::Image image = pool_->AfterPowerCut(random, 0);
    return LoadAs<format::ShardRecord>(std::as_bytes(std::span(image)).subspan(format::ShardRecordOffset(0)));
  }
  [[nodiscard]] uint64_t NoteOnDisk() const { return format::CheckedWord(OnDisk().time).number(); }
  [[nodiscard]] uint64_t LimitOnDisk() const { return format::VersionLimitIn(OnDisk().version_limit).value_or(0); }

  [[nodiscard]] static CrashPool::Images Empty() {
    const CrashPool::Image image(kPoolBytes / sizeof(uint64_t));
    return {image, image, std::make_shared<StreamDisk>(1)};
  }
  std::unique_ptr<CrashPool> pool_ = std::make_unique<CrashPool>(Empty(), nvm::Durability::kPowerSafe);
  nvm::Writer nvm_{pool_->OfShard(0)};
  HandClock clock_;
  std::vector<std::byte> control_ = std::vector<std::byte>(sizeof(format::ControlBlock));
};

TEST_F(HeldLaterTest, TimeNeverPassesANoteThatTheDiskHas) {
  const ServerTime time = ServerTime::From(clock_, 0, 0, kAhead * 1000);
  ExpiryClock expiry(nvm_, 0, control_, time, kAhead);
  expiry.Begin();
  Random random(7);
  uint64_t before = 0;
  for (int step = 0; step < 2000; ++step) {
    clock_.now += Nanoseconds(random.Uniform(4 * kMilli));
    if (random.Chance(0.3)) pool_->HoldAll();
    const uint64_t told = expiry.Raise();
    EXPECT_GE(told, before);
    ASSERT_LE(told, NoteOnDisk()) << "a server that starts after a power cut begins at the note";
    before = told;
  }
  EXPECT_GT(before, 1000);
}

TEST_F(HeldLaterTest, TimeIsExactIfTheDiskIsFastEnough) {
  const ServerTime time = ServerTime::From(clock_, 0, 0, kAhead * 1000);
  ExpiryClock expiry(nvm_, 0, control_, time, kAhead);
  expiry.Begin();
  clock_.now += Nanoseconds(kMilli);
  (void)expiry.Raise();
  for (uint64_t milli = 2; milli < 500; ++milli) {
    pool_->HoldAll();
    clock_.now += Nanoseconds(kMilli);
    ASSERT_EQ(expiry.Raise(), milli);
  }
}

// The disk is slow. A put waits for it that a version with the deadline 100 has decided. A version with an earlier
// deadline does not wait for that put, so nobody may look for it there.
TEST_F(HeldLaterTest, DeadlineBeforeThatOfAJudgedVersionIsNotOverdue) {
  const ServerTime time = ServerTime::From(clock_, 0, 0, kAhead * 1000);
  ExpiryClock expiry(nvm_, 0, control_, time, kAhead);
  expiry.Begin();
  expiry.StandBefore(100);
  clock_.now += Nanoseconds(150 * kMilli);
  EXPECT_FALSE(expiry.HasPassed(50)) << "the disk does not have the note";
  EXPECT_TRUE(expiry.stands());
  EXPECT_FALSE(expiry.IsOverdue(50));
  EXPECT_TRUE(expiry.IsOverdue(100));
  EXPECT_TRUE(expiry.IsOverdue(120));
  pool_->HoldAll();
  EXPECT_TRUE(expiry.HasPassed(50));
  EXPECT_FALSE(expiry.HasPassed(100));
  expiry.LetGo(100);
  EXPECT_FALSE(expiry.stands());
  EXPECT_TRUE(expiry.HasPassed(100));
}

TEST_F(HeldLaterTest, NumberIsBelowALimitThatTheDiskHas) {
  VersionNumbers numbers(nvm_, 0);
  numbers.Begin(0);
  pool_->HoldAll();  // As a server does before it serves.
  for (uint64_t i = 1; i <= 3 * format::kVersionStride; ++i) {
    const uint64_t number = numbers.Next();
    ASSERT_EQ(number, i);
    if (number % (format::kVersionStride / 4) == 0) {
      ASSERT_LT(number, LimitOnDisk());
    }
  }
}

}  // namespace
}  // namespace erda::server
