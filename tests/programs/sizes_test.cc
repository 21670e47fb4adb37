// Sizes and times on command lines and in configuration files.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/shared/command_line.h"

namespace erda::tools {
namespace {

constexpr uint64_t kK = 1024;

TEST(ParseSizeTest, UnitsArePowersOfTwo) {
  const std::pair<std::string_view, uint64_t> sizes[] = {{"0", 0},
                                                         {"7", 7},
                                                         {"3K", 3 * kK},
                                                         {"3k", 3 * kK},
                                                         {"3KiB", 3 * kK},
                                                         {"5M", 5 * kK * kK},
                                                         {"5MiB", 5 * kK * kK},
                                                         {"2G", 2 * kK * kK * kK},
                                                         {"2GiB", 2 * kK * kK * kK},
                                                         {"1T", kK * kK * kK * kK},
                                                         {"1tib", kK * kK * kK * kK}};
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(ParseSize(text), bytes) << text;
}

TEST(ParseSizeTest, DecimalsNeedAUnit) {
  EXPECT_EQ(ParseSize("1.5G"), 3 * kK * kK * kK / 2);
  EXPECT_EQ(ParseSize("0.25KiB"), 256U);
  EXPECT_EQ(ParseSize("0.1K"), 102U);
  EXPECT_EQ(ParseSize("0.999999T"), (kK * kK * kK * kK) * 999999 / 1000000);
  for (const std::string_view text : {"1.5", "1.", "1.G", ".5G", "1.5.5G", "0.0000001G"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(ParseSizeTest, OtherTextsAreNoSizes) {
  for (const std::string_view text : {"", "K", "-1", "+1", " 1", "1 G", "1B", "1KB", "1KiBs", "1P", "1i", "1e9", "0x10",
                                      "18446744073709551616", "16777216T"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseSize("16777215T"), uint64_t{16777215} << 40);
  EXPECT_EQ(ParseSize("18446744073709551615"), UINT64_MAX);
}

TEST(ParseTimeTest, UnitsAreMillisecondsSecondsAndMinutes) {
  EXPECT_EQ(ParseTime("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(ParseTime("10s"), std::chrono::seconds(10));
  EXPECT_EQ(ParseTime("10"), std::chrono::seconds(10));
  EXPECT_EQ(ParseTime("2m"), std::chrono::minutes(2));
  EXPECT_EQ(ParseTime("1440m"), std::chrono::hours(24));
  for (const std::string_view text : {"", "s", "-1s", "1h", "1.5s", "1441m", "18446744073709551615s", "1 s"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace erda::tools
