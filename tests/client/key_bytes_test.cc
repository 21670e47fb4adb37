// Keys of all small sizes are copied and compared whole.
#include "client/key_bytes.h"

#include <gtest/gtest.h>

#include <string>

namespace erda::client {
namespace {

constexpr size_t kSizeMost = 40;

std::string KeyOf(size_t size) {
  std::string key(size, '\0');
  for (size_t i = 0; i < size; ++i) key[i] = static_cast<char>('a' + i % 26);
  return key;
}

TEST(KeyBytesTest, ACopyIsTheKeyAndNothingMore) {
  for (size_t size = 0; size <= kSizeMost; ++size) {
    std::string to(kSizeMost + 2, '.');
    CopyKey(to.data() + 1, KeyOf(size));
    EXPECT_EQ(to, "." + KeyOf(size) + std::string(kSizeMost + 1 - size, '.')) << size;
  }
}

TEST(KeyBytesTest, KeysThatDifferInOneByteOrInSizeAreNotTheSame) {
  for (size_t size = 0; size <= kSizeMost; ++size) {
    const std::string key = KeyOf(size);
    EXPECT_TRUE(SameKey(key, KeyOf(size))) << size;
    EXPECT_FALSE(SameKey(key, key + "a")) << size;
    for (size_t i = 0; i < size; ++i) {
      std::string other = key;
      other[i] = '.';
      EXPECT_FALSE(SameKey(key, other)) << size << ", byte " << i;
    }
  }
}

}  // namespace
}  // namespace erda::client
