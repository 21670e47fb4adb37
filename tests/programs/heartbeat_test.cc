#include "tools/shared/heartbeat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace erda::tools {
namespace {

TEST(HeartbeatTest, HeartbeatPrintsWhileItsProgramWaits) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::FILE* const from = ::fdopen(ends[0], "r");
  std::FILE* const to = ::fdopen(ends[1], "w");
  const auto line = [from] {
    std::array<char, 100> text{};
    return std::string(std::fgets(text.data(), text.size(), from));
  };
  {
    Heartbeat heartbeat("a-program", "the first part", std::chrono::milliseconds(1), to);
    EXPECT_EQ(line(), "a-program: the first part, after 0 s\n");
    EXPECT_EQ(line().rfind("a-program: the first part, after ", 0), 0U);
    heartbeat.Tell("the second part");
    while (line().rfind("a-program: the second part, after ", 0) != 0) {
    }
  }
  std::fclose(to);
  std::fclose(from);
}

}  // namespace
}  // namespace erda::tools
