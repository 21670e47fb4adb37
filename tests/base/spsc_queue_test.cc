#include "base/spsc_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace erda {
namespace {

TEST(SpscQueueTest, PopsElementsInTheOrderOfThePushes) {
  SpscQueue<int, 4> queue;
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_TRUE(queue.Push(3));
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 3);
}

TEST(SpscQueueTest, EmptyQueuePopsNothing) {
  SpscQueue<int, 4> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.Pop());
  ASSERT_TRUE(queue.Push(1));
  EXPECT_FALSE(queue.empty());
  ASSERT_TRUE(queue.Pop());
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.Pop());
}

TEST(SpscQueueTest, FullQueueRefusesElements) {
  SpscQueue<int, 4> queue;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(queue.room(), 4U - static_cast<size_t>(i));
    EXPECT_TRUE(queue.Push(i));
  }
  EXPECT_EQ(queue.room(), 0U);
  EXPECT_FALSE(queue.Push(4));
  EXPECT_EQ(queue.pushed(), 4U);
  EXPECT_EQ(queue.Pop(), 0);  // what was refused took no other's place
  EXPECT_EQ(queue.pushed(), 4U);
  EXPECT_EQ(queue.room(), 1U);
  EXPECT_TRUE(queue.Push(4));
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(queue.Pop(), i);
}

TEST(SpscQueueTest, IndicesWrapAround) {
  SpscQueue<int, 8> queue;
  int pushed = 0;
  int popped = 0;
  for (size_t fill = 1; fill <= 8; ++fill) {
    for (int round = 0; round < 20; ++round) {
      for (size_t i = 0; i < fill; ++i) ASSERT_TRUE(queue.Push(pushed++));
      EXPECT_EQ(queue.room(), 8 - fill);
      for (size_t i = 0; i < fill; ++i) ASSERT_EQ(queue.Pop(), popped++);
      EXPECT_TRUE(queue.empty());
    }
  }
}

// Each element names the place of a store before its push.
TEST(SpscQueueTest, SecondThreadPopsInOrderAndSeesEarlierStores) {
  constexpr uint64_t kElements = 1'000'000;
  constexpr uint64_t kPlaces = 256;  // Not used again before the other thread has read them.
  SpscQueue<uint64_t, 64> queue;
  std::vector<uint64_t> places(kPlaces);
  std::thread pusher([&] {
    for (uint64_t i = 1; i <= kElements; ++i) {
      while (queue.room() == 0) std::this_thread::yield();
      places[i % kPlaces] = i;
      ASSERT_TRUE(queue.Push(i));
    }
  });
  uint64_t out_of_order = 0;
  uint64_t not_seen = 0;
  for (uint64_t expected = 1; expected <= kElements;) {
    const auto got = queue.Pop();
    if (!got) {
      std::this_thread::yield();
      continue;
    }
    out_of_order += *got == expected ? 0 : 1;
    not_seen += places[expected % kPlaces] == expected ? 0 : 1;
    ++expected;
  }
  pusher.join();
  EXPECT_EQ(out_of_order, 0U);
  EXPECT_EQ(not_seen, 0U);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace erda
