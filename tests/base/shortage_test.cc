// Offers of the processor that take whole time slices begin a shortage.
#include "base/shortage.h"

#include <gtest/gtest.h>

namespace erda {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class ShortageTest : public testing::Test {
 protected:
  void Wait(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) shortage_.BeginWait();
  }
  void Offer(Nanoseconds taken) {
    const Nanoseconds from = now_;
    now_ += taken;
    shortage_.Offered(from, now_);
  }
  // Offers the processor to a thread that computes, until the shortage is noticed.
  void MeetHogs() {
    for (uint32_t i = 0; i < Shortage::kLongOffers; ++i) Offer(kSlice);
  }
  // Lets the shortage end, and returns how long that took.
  Nanoseconds LetEnd() {
    const Nanoseconds begin = now_;
    while (shortage_.Lasts(now_)) now_ += milliseconds(1);
    return now_ - begin;
  }

  static constexpr Nanoseconds kSlice = milliseconds(4);
  Shortage shortage_;
  Nanoseconds now_ = std::chrono::hours(1);
};

TEST_F(ShortageTest, ShortOffersBeginNone) {
  for (int i = 0; i < 100'000; ++i) {
    Wait(1);
    Offer(microseconds(30));
  }
  EXPECT_FALSE(shortage_.is_short());
  EXPECT_FALSE(shortage_.Lasts(now_));
}

TEST_F(ShortageTest, OffersOfTimeSlicesInAFewWaitsBeginOne) {
  for (uint32_t i = 0; i < Shortage::kLongOffers; ++i) {
    EXPECT_FALSE(shortage_.is_short()) << "a single long offer may be an accident";
    Wait(1);
    Offer(kSlice);
  }
  EXPECT_TRUE(shortage_.is_short());
  EXPECT_TRUE(shortage_.Lasts(now_));
}

TEST_F(ShortageTest, TheTimeBetweenOffersDoesNotCount) {
  for (uint32_t i = 0; i < Shortage::kLongOffers; ++i) {
    now_ += std::chrono::seconds(10);
    Wait(1);
    Offer(kSlice);
  }
  EXPECT_TRUE(shortage_.is_short());
}

TEST_F(ShortageTest, LongOffersThatCostLessThanSleepsBeginNone) {
  const auto waits = static_cast<uint32_t>(kSlice / Shortage::kSleepCost);
  for (int i = 0; i < 100; ++i) {
    Wait(waits);
    Offer(kSlice);
    EXPECT_FALSE(shortage_.is_short()) << i;
  }
  Wait(waits - 1);
  MeetHogs();
  EXPECT_TRUE(shortage_.is_short());
}

TEST_F(ShortageTest, LongOffersInACrowdOfShortOnesBeginNone) {
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 4; ++k) Offer(microseconds(300));
    Offer(kSlice);
    EXPECT_FALSE(shortage_.is_short()) << i;
  }
}

TEST_F(ShortageTest, AFewShortOffersDoNotHideLongOnes) {
  for (int k = 0; k < 20; ++k) Offer(microseconds(30));
  MeetHogs();
  EXPECT_TRUE(shortage_.is_short());
}

TEST_F(ShortageTest, ShortageEndsByItself) {
  MeetHogs();
  EXPECT_EQ(LetEnd(), Shortage::kFirst);
  EXPECT_FALSE(shortage_.is_short());
}

TEST_F(ShortageTest, ShortageThatGoesOnLastsLonger) {
  MeetHogs();
  Nanoseconds last = LetEnd();
  for (int i = 0; i < 10; ++i) {
    Wait(3);
    MeetHogs();
    const Nanoseconds lasted = LetEnd();
    EXPECT_EQ(lasted, std::min(2 * last, Shortage::kLongest));
    last = lasted;
  }
  EXPECT_EQ(last, Shortage::kLongest);
}

TEST_F(ShortageTest, AfterACalmTimeTheNextShortageIsAFirstOne) {
  MeetHogs();
  LetEnd();
  MeetHogs();
  EXPECT_EQ(LetEnd(), 2 * Shortage::kFirst);
  now_ += 2 * Shortage::kFirst;
  MeetHogs();
  EXPECT_EQ(LetEnd(), Shortage::kFirst);
}

TEST_F(ShortageTest, WaitsDuringAShortageDoNotHideTheNextOffers) {
  MeetHogs();
  Wait(100'000);
  for (int k = 0; k < 100; ++k) Offer(microseconds(300));
  LetEnd();
  MeetHogs();
  EXPECT_TRUE(shortage_.is_short());
}

}  // namespace
}  // namespace erda
