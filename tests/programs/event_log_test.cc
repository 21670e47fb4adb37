// Lines of erda-server about clients that break the rules: they cannot fill a disk.
#include "tools/shared/event_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/hand_clock.h"

namespace erda::tools {
namespace {

class EventLogTest : public testing::Test {
 protected:
  HandClock clock_;
  std::vector<std::string> lines_;
  EventLog log_{clock_, [this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(EventLogTest, PrintsSomeLinesAtOnceThenOnePerSecond) {
  for (int i = 0; i < 1000; ++i) log_.Tell(std::to_string(i));
  ASSERT_EQ(lines_.size(), EventLog::kAtOnce);
  EXPECT_EQ(lines_.back(), "19");
  lines_.clear();
  // Half an hour, a thousand events in a second.
  constexpr int kSeconds = 2000;
  for (int i = 0; i < kSeconds * 1000; ++i) {
    clock_.now += std::chrono::milliseconds(1);
    log_.Tell("x");
  }
  EXPECT_LE(lines_.size(), 2U * kSeconds) << "one, and one that says how many there were in between";
  EXPECT_EQ(lines_[0], "1979 more lines like these were left out") << "980, and 999 in the first second";
}

TEST_F(EventLogTest, PrintsTheNumberOfLinesLeftOut) {
  for (int i = 0; i < 30; ++i) log_.Tell("x");
  lines_.clear();
  clock_.now += std::chrono::seconds(1);
  log_.Tell("next");
  EXPECT_EQ(lines_, (std::vector<std::string>{"10 more lines like these were left out", "next"}));
  lines_.clear();
  for (int i = 0; i < 3; ++i) log_.Tell("x");
  EXPECT_TRUE(lines_.empty());
  log_.End();
  EXPECT_EQ(lines_, std::vector<std::string>{"3 more lines like these were left out"});
  log_.End();
  EXPECT_EQ(lines_.size(), 1U);
}

TEST_F(EventLogTest, PrintsSomeLinesAtOnceAfterAPause) {
  for (int i = 0; i < 30; ++i) log_.Tell("x");
  clock_.now += std::chrono::hours(1);
  lines_.clear();
  for (int i = 0; i < 30; ++i) log_.Tell("y");
  EXPECT_EQ(lines_.size(), 1U + EventLog::kAtOnce);
}

}  // namespace
}  // namespace erda::tools
