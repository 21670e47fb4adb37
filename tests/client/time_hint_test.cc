// The client's guess of the server's time.
#include "client/time_hint.h"

#include <gtest/gtest.h>

#include <chrono>

namespace erda::client {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TimeHintTest, TimeContinuesFromTheAnswerByTheClientsClock) {
  TimeHint hint;
  hint.Learn(seconds(5), 1'000'000'500);
  EXPECT_TRUE(hint.HasPassed(1'000'000, seconds(5)));
  EXPECT_FALSE(hint.HasPassed(1'000'001, seconds(5) + microseconds(499)));
  EXPECT_TRUE(hint.HasPassed(1'000'001, seconds(5) + microseconds(500)));
  EXPECT_FALSE(hint.HasPassed(1'001'000, seconds(5) + milliseconds(999)));
  EXPECT_TRUE(hint.HasPassed(1'001'000, seconds(6)));
}

TEST(TimeHintTest, TheNextAnswerReplacesTheOneBefore) {
  TimeHint hint;
  hint.Learn(seconds(5), 1'000'000'000);
  hint.Learn(seconds(6), 1'000'000'000);  // The client's clock is too fast.
  EXPECT_FALSE(hint.HasPassed(1'000'001, seconds(6)));
}

TEST(TimeHintTest, ClockBeforeTheAnswerGivesTheTimeOfTheAnswer) {
  TimeHint hint;
  hint.Learn(seconds(5), 1'000'000'000);
  EXPECT_TRUE(hint.HasPassed(1'000'000, seconds(4)));
  EXPECT_FALSE(hint.HasPassed(1'000'001, seconds(4)));
}

TEST(TimeHintTest, ExtremeAnswersCountAsTimes) {
  for (const uint64_t micros : {uint64_t{0}, ServerTime::kMicrosMax, UINT64_MAX}) {
    TimeHint hint;
    hint.Learn(seconds(0), micros);
    EXPECT_EQ(hint.HasPassed(ServerTime::kDeadlineMax, seconds(1)), micros != 0);
  }
}

}  // namespace
}  // namespace erda::client
