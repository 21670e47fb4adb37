// The requests in a queue pair, by number.
#include "fabric/verbs/posted_ring.h"

#include <gtest/gtest.h>

namespace erda::fabric::verbs {
namespace {

class PostedRingTest : public testing::Test {
 protected:
  PostedRingTest() { ring_.Resize(8); }
  void Add(uint64_t id) { ring_.Add({.id = id}); }

  PostedRing ring_;
  PostedRequest taken_;
};

TEST_F(PostedRingTest, OnePlaceIsKeptForTheLastRequest) {
  EXPECT_EQ(ring_.room(), 7U);
  for (uint64_t id = 0; id < 7; ++id) Add(id);
  EXPECT_EQ(ring_.room(), 0U);
  Add(100);
  ASSERT_TRUE(ring_.Take(7, &taken_));
  EXPECT_EQ(taken_.id, 100U);
  EXPECT_TRUE(ring_.empty());
}

TEST_F(PostedRingTest, PlacesAreAPowerOfTwo) {
  for (const auto& [places, used] : {std::pair(1U, 1U), {2U, 2U}, {127U, 64U}, {128U, 128U}}) {
    PostedRing ring;
    ring.Resize(places);
    EXPECT_EQ(ring.places(), used);
    EXPECT_EQ(ring.room(), used - 1);
  }
}

TEST_F(PostedRingTest, CompletionTakesEarlierRequestsAlong) {
  for (uint64_t id = 10; id < 15; ++id) Add(id);
  ASSERT_TRUE(ring_.Take(2, &taken_));
  EXPECT_EQ(taken_.id, 12U);
  EXPECT_FALSE(ring_.Take(1, &taken_)) << "it is done";
  EXPECT_FALSE(ring_.Take(2, &taken_)) << "it is done";
  ASSERT_TRUE(ring_.Take(3, &taken_));
  EXPECT_EQ(taken_.id, 13U);
}

TEST_F(PostedRingTest, UnknownNumberTakesNothing) {
  Add(1);
  EXPECT_FALSE(ring_.Take(1, &taken_));
  EXPECT_FALSE(ring_.Take(UINT32_MAX, &taken_));
  EXPECT_FALSE(ring_.empty());
}

TEST_F(PostedRingTest, NumbersGoOnAroundTheRing) {
  for (uint32_t number = 0; number < 1000; ++number) {
    ASSERT_EQ(ring_.next(), number);
    Add(number);
    ASSERT_TRUE(ring_.Take(number, &taken_));
    ASSERT_EQ(taken_.id, number);
  }
  EXPECT_EQ(ring_.room(), 7U);
}

TEST_F(PostedRingTest, TakenBackRequestsAreForgotten) {
  for (uint64_t id = 0; id < 3; ++id) Add(id);
  ring_.TakeBack(2);
  EXPECT_EQ(ring_.next(), 1U);
  EXPECT_FALSE(ring_.Take(1, &taken_));
  Add(9);
  ASSERT_TRUE(ring_.Take(1, &taken_));
  EXPECT_EQ(taken_.id, 9U);
}

TEST_F(PostedRingTest, OldestComesFirst) {
  EXPECT_TRUE(ring_.empty());
  Add(1);
  Add(2);
  EXPECT_EQ(ring_.oldest().id, 1U);
  ring_.DropOldest();
  EXPECT_EQ(ring_.oldest().id, 2U);
  ring_.DropOldest();
  EXPECT_TRUE(ring_.empty());
}

}  // namespace
}  // namespace erda::fabric::verbs
