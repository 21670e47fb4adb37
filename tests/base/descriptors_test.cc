// Counting the process's open descriptors.
#include "base/descriptors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/event_fd.h"

namespace erda {
namespace {

TEST(DescriptorsTest, OneMoreIsOpenOneMoreIsCounted) {
  const uint64_t before = CountDescriptors();
  EventFd one;
  ASSERT_TRUE(one.Create());
  EXPECT_EQ(CountDescriptors(), before + 1);
}

// A thread that counts has the folder of descriptors open.
TEST(DescriptorsTest, ThreadsThatCountDoNotCountEachOther) {
  const uint64_t alone = CountDescriptors();
  std::atomic<uint64_t> counts{0};
  const std::jthread other([&counts](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++counts) (void)CountDescriptors();
  });
  while (counts == 0) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(CountDescriptors(), alone);
}

}  // namespace
}  // namespace erda
