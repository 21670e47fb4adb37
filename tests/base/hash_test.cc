#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace erda {
namespace {

// The hash is part of the pool's format: with other values, no key of an existing pool is ever found again.
TEST(HashKeyTest, TheHashesOfTheFormatNeverChange) {
  EXPECT_EQ(HashKey(""), 0x2d06800538d394c2U);
  EXPECT_EQ(HashKey("a"), 0xe6c632b61e964e1fU);
  EXPECT_EQ(HashKey("key"), 0xbbea0d63a05165e3U);
  EXPECT_EQ(HashKey("user0000000042"), 0x7c3889cadf7b76f4U);
  EXPECT_EQ(HashKey(std::string(17, '\0')), 0xc2915ca0df7ad4c1U);
  EXPECT_EQ(HashKey("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), 0x1e841dae933ea302U);
  EXPECT_EQ(HashKey(std::string(200, 'x')), 0x50ef124fb1e4de53U);
  EXPECT_EQ(HashKey(std::string(1024, '\xff')), 0x91a9afd3ad9eb82eU);
}

TEST(HashKeyTest, AlignmentDoesNotMatter) {
  const std::string text = "xxxxxxxxthe same key";
  for (size_t at = 0; at <= 8; ++at) {
    const std::string moved = std::string(at, 'x') + "the same key";
    EXPECT_EQ(HashKey(std::string_view(moved).substr(at)), HashKey(std::string_view(text).substr(8)));
  }
}

static_assert(Spread32(0, 7) == 0 && Spread32(UINT32_MAX, 7) == 6 && Spread32(UINT32_MAX, 1) == 0);
static_assert(Spread32(UINT32_MAX, UINT32_MAX) == UINT32_MAX - 1 && Spread32(1U << 31, 2) == 1);
static_assert(Spread32((1U << 31) - 1, 2) == 0);
static_assert(Spread64(0, 7) == 0 && Spread64(UINT64_MAX, 7) == 6 && Spread64(UINT64_MAX, 1) == 0);
static_assert(Spread64(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1 && Spread64(uint64_t{1} << 63, 2) == 1);

TEST(SpreadTest, EveryNumberStaysBelowTheBound) {
  constexpr uint64_t kSeed = 1;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t uniform = random.Next();
    const auto n = static_cast<uint32_t>(random.Between(1, UINT32_MAX));
    ASSERT_LT(Spread32(static_cast<uint32_t>(uniform), n), n) << uniform;
    const uint64_t m = random.Between(1, UINT64_MAX - 1);
    ASSERT_LT(Spread64(uniform, m), m) << uniform;
  }
}

// Each of n results has an interval of its own, and they are equal but for one.
TEST(SpreadTest, EachResultCoversAnEqualInterval) {
  for (const uint32_t n : {1U, 2U, 3U, 10U, 64U, 1000U}) {
    const uint64_t step = (uint64_t{1} << 32) / n;
    for (uint32_t i = 0; i < n; ++i) {
      const auto begin = static_cast<uint32_t>(((uint64_t{i} << 32) + n - 1) / n);
      EXPECT_EQ(Spread32(begin, n), i) << n;
      EXPECT_EQ(Spread32(static_cast<uint32_t>(begin + step - 1), n), i) << n;
      if (i > 0) {
        EXPECT_EQ(Spread32(begin - 1, n), i - 1) << n;
      }
    }
  }
}

TEST(SpreadTest, TheOrderIsKept) {
  for (const uint64_t n : {uint64_t{3}, uint64_t{1000}, (uint64_t{1} << 40) + 1}) {
    uint64_t last = 0;
    for (uint64_t uniform = 0; uniform < UINT64_MAX - (uint64_t{1} << 54); uniform += uint64_t{1} << 54) {
      ASSERT_GE(Spread64(uniform, n), last);
      last = Spread64(uniform, n);
    }
  }
}

}  // namespace
}  // namespace erda
