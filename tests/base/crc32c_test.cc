#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace erda {
namespace {

uint32_t CrcOf(std::string_view text) { return Crc32c(0, AsBytes(text)); }

std::vector<std::byte> RandomBytes(size_t size, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = std::byte(random.Uniform(256));
  return bytes;
}

// Computes the CRC bit by bit, from the definition: reflected, polynomial 0x1edc6f41, all ones before and inverted
// after.
uint32_t SlowCrc(std::span<const std::byte> bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

// The same first word for each key, as where objects are filled in a loop.
// On a processor without the instruction, the program ends here if the compiler takes the word before the loop.
TEST(Crc32cTest, AWordThatStaysTheSameInALoopIsTakenOnlyIfTheProcessorCan) {
  constexpr uint64_t kSame = 0x4000000000;
  constexpr size_t kKeyBytes = 24;
  const auto keys = RandomBytes(100 * kKeyBytes, 6);
  std::vector<uint32_t> checksums(keys.size() / kKeyBytes);
  for (size_t i = 0; i < checksums.size(); ++i)
    checksums[i] = Crc32cOfWords(0, std::span(keys).subspan(i * kKeyBytes).first<kKeyBytes>(), kSame, i);
  const uint32_t begin = SlowCrc(std::as_bytes(std::span(&kSame, 1)));
  for (size_t i = 0; i < checksums.size(); ++i) {
    const uint32_t words = Crc32c(begin, std::as_bytes(std::span(&i, 1)));
    ASSERT_EQ(checksums[i], Crc32c(words, std::span(keys).subspan(i * kKeyBytes, kKeyBytes))) << "key " << i;
  }
}

// From RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32cTest, KnownVectorsGiveTheirChecksums) {
  std::string rising;
  std::string falling;
  for (int i = 0; i < 32; ++i) {
    rising.push_back(static_cast<char>(i));
    falling.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(CrcOf(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(CrcOf(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(CrcOf(rising), 0x46dd794eU);
  EXPECT_EQ(CrcOf(falling), 0x113fdb5cU);
  EXPECT_EQ(CrcOf("123456789"), 0xe3069283U);
}

TEST(Crc32cTest, NoBytesLeaveTheChecksumUnchanged) {
  EXPECT_EQ(CrcOf(""), 0U);
  EXPECT_EQ(Crc32c(0xe3069283, {}), 0xe3069283U);
}

TEST(Crc32cTest, EveryLengthAndAlignmentAgreesWithTheDefinition) {
  const auto bytes = RandomBytes(600, 1);
  for (size_t begin = 0; begin < 17; ++begin) {
    for (size_t size = 0; begin + size <= bytes.size(); size += size < 80 ? 1 : 37) {
      const auto part = std::span(bytes).subspan(begin, size);
      ASSERT_EQ(Crc32c(0, part), SlowCrc(part)) << "bytes " << begin << " to " << begin + size;
    }
  }
}

// The code for a processor without the instruction. This machine's processor may have it.
TEST(Crc32cTest, TheTableAgreesWithTheDefinition) {
  const auto bytes = RandomBytes(600, 5);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; begin + size <= bytes.size(); size += size < 80 ? 1 : 37) {
      const auto part = std::span(bytes).subspan(begin, size);
      ASSERT_EQ(Crc32cByTable(0, part), SlowCrc(part)) << "bytes " << begin << " to " << begin + size;
    }
  }
  EXPECT_EQ(Crc32cByTable(0, AsBytes("123456789")), 0xe3069283U);
}

TEST(Crc32cTest, TableAndCrc32cContinueEachOther) {
  const auto bytes = RandomBytes(300, 6);
  const std::span all(bytes);
  const uint32_t whole = Crc32c(0, all);
  for (size_t split = 0; split <= all.size(); ++split) {
    ASSERT_EQ(Crc32cByTable(Crc32c(0, all.first(split)), all.subspan(split)), whole) << "split at " << split;
    ASSERT_EQ(Crc32c(Crc32cByTable(0, all.first(split)), all.subspan(split)), whole) << "split at " << split;
  }
}

TEST(Crc32cTest, ChecksumsContinueAtEverySplitPoint) {
  const auto bytes = RandomBytes(300, 2);
  const std::span all(bytes);
  const uint32_t whole = Crc32c(0, all);
  for (size_t split = 0; split <= all.size(); ++split) {
    ASSERT_EQ(Crc32c(Crc32c(0, all.first(split)), all.subspan(split)), whole) << "split at " << split;
  }
}

TEST(Crc32cTest, ChecksumsContinueByteByByte) {
  const auto bytes = RandomBytes(100, 3);
  uint32_t crc = 0;
  for (const std::byte& byte : bytes) crc = Crc32c(crc, {&byte, 1});
  EXPECT_EQ(crc, Crc32c(0, bytes));
}

TEST(Crc32cTest, ChecksumsOfTwoRangesCombineWithoutTheBytes) {
  const auto bytes = RandomBytes(3000, 5);
  const std::span all(bytes);
  for (size_t size = 0; size <= all.size(); size += size < 300 ? 1 : 301) {
    for (const size_t split : {size_t{0}, std::min(size_t{1}, size), size / 2, size}) {
      const auto behind = all.subspan(split, size - split);
      const uint32_t both = Crc32cOfBoth(Crc32c(7, all.first(split)), Crc32c(0, behind), behind.size());
      ASSERT_EQ(both, Crc32c(7, all.first(size))) << size << " bytes, split at " << split;
    }
  }
  // The steps of long values: many zero bytes at once give the same as one after the other.
  for (uint64_t bytes_behind = 1; bytes_behind < uint64_t{1} << 40; bytes_behind *= 2) {
    const uint32_t half = Crc32cOfBoth(0x1234567, 0, bytes_behind / 2);
    ASSERT_EQ(Crc32cOfBoth(half, 0, bytes_behind - bytes_behind / 2), Crc32cOfBoth(0x1234567, 0, bytes_behind));
  }
}

TEST(Crc32cTest, EachFlippedBitChangesTheChecksum) {
  auto bytes = RandomBytes(64, 4);
  const uint32_t whole = Crc32c(0, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_NE(Crc32c(0, bytes), whole) << "bit " << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

}  // namespace
}  // namespace erda
