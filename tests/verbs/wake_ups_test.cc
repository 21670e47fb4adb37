// The descriptors that end a queue's sleep.
#include "fabric/verbs/wake_ups.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "base/event_fd.h"

namespace erda::fabric::verbs {
namespace {

class WakeUpsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(wake_ups_.Create().ok());
    for (EventFd& fd : watched_) {
      ASSERT_TRUE(fd.Create());
      ASSERT_TRUE(wake_ups_.Watch(fd.get()).ok());
    }
  }
  [[nodiscard]] bool Readable() const {
    pollfd watched{wake_ups_.descriptor(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }

  std::array<EventFd, 2> watched_;
  WakeUps wake_ups_;
};

TEST_F(WakeUpsTest, NothingIsReadableAtFirst) {
  EXPECT_FALSE(Readable());
  EXPECT_TRUE(wake_ups_.TakeReadable().empty());
}

TEST_F(WakeUpsTest, ReadableDescriptorsAreReturned) {
  watched_[1].Ring();
  EXPECT_TRUE(Readable());
  EXPECT_EQ(wake_ups_.TakeReadable(), std::vector{watched_[1].get()});
  EXPECT_TRUE(Readable()) << "its owner has not read it";
  watched_[1].Drain();
  EXPECT_FALSE(Readable());
  EXPECT_TRUE(wake_ups_.TakeReadable().empty());
}

TEST_F(WakeUpsTest, RingEndsOneSleep) {
  wake_ups_.Ring();
  wake_ups_.Ring();
  EXPECT_TRUE(Readable());
  wake_ups_.Sleep(std::chrono::hours(1));  // Returns at once, or the test never ends.
  EXPECT_TRUE(wake_ups_.TakeReadable().empty()) << "it is no watched descriptor";
  EXPECT_FALSE(Readable());
}

TEST_F(WakeUpsTest, SleepEndsAfterItsTime) {
  const auto begin = std::chrono::steady_clock::now();
  wake_ups_.Sleep(std::chrono::milliseconds(5));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(5));
}

// The descriptor of a removed device is in error. A pipe without a reader is, too.
TEST_F(WakeUpsTest, DescriptorInErrorIsWatchedNoMore) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_TRUE(wake_ups_.Watch(ends[1]).ok());
  ::close(ends[0]);
  EXPECT_TRUE(Readable());
  EXPECT_TRUE(wake_ups_.TakeReadable().empty());
  EXPECT_FALSE(Readable()) << "it would end each sleep at once";
  watched_[0].Ring();
  EXPECT_EQ(wake_ups_.TakeReadable(), std::vector{watched_[0].get()}) << "the others are still watched";
  ::close(ends[1]);
}

TEST_F(WakeUpsTest, InvalidDescriptorIsRefused) { EXPECT_FALSE(wake_ups_.Watch(-1).ok()); }

}  // namespace
}  // namespace erda::fabric::verbs
