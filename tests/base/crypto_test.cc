#include "base/crypto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/bytes.h"

namespace erda {
namespace {

std::string Hex(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

// Test cases 1, 2 and 6 of RFC 4231.
TEST(CryptoTest, HmacSha256GivesTheStandardsVectors) {
  EXPECT_EQ(Hex(HmacSha256(AsBytes(std::string(20, '\x0b')), {AsBytes("Hi There")})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256(AsBytes("Jefe"), {AsBytes("what do ya "), AsBytes(""), AsBytes("want for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(AsBytes(std::string(131, '\xaa')),
                           {AsBytes("Test Using Larger Than Block-Size Key - Hash Key First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(CryptoTest, BytesAreTheSameOnlyIfAllAre) {
  const std::string one(32, 'x');
  EXPECT_TRUE(SameBytes(AsBytes(one), AsBytes(std::string(32, 'x'))));
  for (size_t bit = 0; bit < 8 * one.size(); ++bit) {
    std::string other = one;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(SameBytes(AsBytes(one), AsBytes(other))) << bit;
  }
}

TEST(CryptoTest, RandomBytesAreNotTheSameTwice) {
  Digest one{};
  Digest two{};
  FillRandom(std::as_writable_bytes(std::span(one)));
  FillRandom(std::as_writable_bytes(std::span(two)));
  EXPECT_NE(one, two);
  EXPECT_FALSE(std::ranges::all_of(one, [](uint8_t byte) { return byte == 0; }));
}

}  // namespace
}  // namespace erda
