#include "base/hash.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <string>

#include "base/random.h"
#include "base/test_hash.h"

namespace erda {
namespace {

// The hash is part of the pool's format: with other values, no key of an existing pool would be found again. The
// numbers are those of CPython's hash(bytes) with PYTHONHASHSEED=0. Its seed is zero then, and its algorithm siphash13.
TEST(HashKeyTest, HashIsSipHash13AsInCPython) {
  constexpr HashSeed kZero{};
  EXPECT_EQ(HashKey("a", kZero), 0x407448d2b89b1813U);
  EXPECT_EQ(HashKey("key", kZero), 0xdf61b30b684217c0U);
  EXPECT_EQ(HashKey("user0000000042", kZero), 0xb90bc5f3ac05cee1U);
  EXPECT_EQ(HashKey(std::string(17, '\0'), kZero), 0x9845044618bd249eU);
  EXPECT_EQ(HashKey("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", kZero), 0x0cd198c4d1bb4b52U);
  EXPECT_EQ(HashKey(std::string(200, 'x'), kZero), 0xe27ba1701482722bU);
  EXPECT_EQ(HashKey(std::string(1024, '\xff'), kZero), 0xf47b18a512f35262U);
}

TEST(HashKeyTest, TheHashesOfTheFormatNeverChange) {
  constexpr HashSeed kSeed = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  EXPECT_EQ(HashKey("", kSeed), 0xabac0158050fc4dcU);
  EXPECT_EQ(HashKey("key", kSeed), 0x3477d32dd11798e1U);
  EXPECT_EQ(HashKey("user0000000042", kSeed), 0xa824272c604b56e7U);
  EXPECT_EQ(HashKey(std::string(1024, '\xff'), kSeed), 0x4deaf2e2150538edU);
}

// libsodium has the same hash with 2 and 4 rounds. Each length tests one way to take the last bytes.
TEST(HashKeyTest, HashEqualsLibsodiumsForEachLength) {
  const HashSeed seed = {0x0123456789abcdef, 0xfedcba9876543210};
  std::string bytes;
  for (size_t size = 0; size <= 1024; ++size) {
    uint64_t expected = 0;
    crypto_shorthash(reinterpret_cast<unsigned char*>(&expected), reinterpret_cast<const unsigned char*>(bytes.data()),
                     size, reinterpret_cast<const unsigned char*>(seed.data()));
    ASSERT_EQ((SipHash<2, 4>(seed).Of(bytes)), expected) << size;
    bytes.push_back(static_cast<char>(size * 167 + 1));
  }
}

TEST(HashKeyTest, EachBitOfTheSeedChangesTheHash) {
  for (size_t bit = 0; bit < 128; ++bit) {
    HashSeed seed = kTestHashSeed;
    seed[bit / 64] ^= uint64_t{1} << bit % 64;
    EXPECT_NE(HashKey("key", seed), HashKey("key")) << bit;
  }
}

TEST(HashKeyTest, HashDoesNotDependOnAlignment) {
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

// Each of n results has a separate interval. Their sizes differ by at most one.
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

TEST(SpreadTest, SpreadKeepsTheOrder) {
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
