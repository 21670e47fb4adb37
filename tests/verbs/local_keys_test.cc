// The keys of registered memory, and how a channel finds the key of its local bytes.
#include "fabric/verbs/local_keys.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

namespace erda::fabric::verbs {
namespace {

class LocalKeysTest : public testing::Test {
 protected:
  [[nodiscard]] LocalKey KeyOf(size_t begin, size_t end, uint32_t key, bool writable = true) const {
    return {memory_.data() + begin, memory_.data() + end, key, writable};
  }
  [[nodiscard]] std::span<const std::byte> Bytes(size_t begin, size_t end) const {
    return std::span(memory_).subspan(begin, end - begin);
  }
  // Returns the key that the channel finds, or 0.
  uint32_t Find(size_t begin, size_t end, bool to_write = false) {
    uint32_t key = 0;
    return last_.Find(copy_, Bytes(begin, end), to_write, &key) ? key : 0;
  }

  std::array<std::byte, 300> memory_{};
  LocalKeys keys_;
  LocalKeyCopy copy_{keys_};
  LastLocalKey last_;
};

TEST_F(LocalKeysTest, KeyIsThatOfTheRegionAroundTheBytes) {
  keys_.Add(KeyOf(0, 100, 1));
  keys_.Add(KeyOf(100, 200, 2));
  EXPECT_EQ(Find(0, 100), 1U);
  EXPECT_EQ(Find(99, 100), 1U);
  EXPECT_EQ(Find(100, 101), 2U);
  EXPECT_EQ(Find(199, 200), 2U);
  EXPECT_EQ(Find(10, 20), 1U) << "the other region again";
}

TEST_F(LocalKeysTest, BytesOutsideEveryRegionHaveNoKey) {
  EXPECT_EQ(Find(0, 1), 0U) << "nothing is registered";
  keys_.Add(KeyOf(10, 100, 1));
  keys_.Add(KeyOf(100, 200, 2));
  EXPECT_EQ(Find(9, 20), 0U);
  EXPECT_EQ(Find(90, 101), 0U) << "two regions hold the bytes only together";
  EXPECT_EQ(Find(190, 201), 0U);
  EXPECT_EQ(Find(250, 260), 0U);
}

TEST_F(LocalKeysTest, ReadNeedsAWritableRegion) {
  keys_.Add(KeyOf(0, 100, 1, false));
  EXPECT_EQ(Find(0, 10), 1U);
  EXPECT_EQ(Find(0, 10, true), 0U);
  keys_.Add(KeyOf(0, 50, 2));
  EXPECT_EQ(Find(0, 10, true), 2U) << "an overlapping region is writable";
}

TEST_F(LocalKeysTest, RemovedRegionIsNotFoundAgain) {
  keys_.Add(KeyOf(0, 100, 1));
  keys_.Add(KeyOf(100, 200, 2));
  ASSERT_EQ(Find(0, 10), 1U);
  keys_.Remove(KeyOf(0, 100, 1));
  EXPECT_EQ(Find(0, 10), 0U);
  EXPECT_EQ(Find(100, 110), 2U);
  keys_.Add(KeyOf(0, 100, 3));
  EXPECT_EQ(Find(0, 10), 3U) << "the same memory under another key";
}

TEST_F(LocalKeysTest, EachChangeMakesAnotherVersion) {
  const uint64_t first = keys_.version();
  keys_.Add(KeyOf(0, 100, 1));
  const uint64_t second = keys_.version();
  EXPECT_NE(second, first);
  ASSERT_EQ(Find(0, 10), 1U);
  EXPECT_EQ(copy_.version(), second);
  keys_.Remove(KeyOf(0, 100, 1));
  EXPECT_FALSE(copy_.IsCurrent(second));
}

}  // namespace
}  // namespace erda::fabric::verbs
