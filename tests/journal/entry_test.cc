#include "journal/entry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"

namespace erda::journal {
namespace {

class EntryTest : public testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;
  static constexpr uint64_t kPoolBytes = 1 << 20;

  static Bytes BytesEntry(uint64_t offset, std::string_view bytes, bool fenced = false) {
    Bytes entry(EntrySpace(bytes.size()), std::byte{0xee});
    WriteBytes(entry.data(), offset, AsBytes(bytes), fenced);
    return entry;
  }
  static Bytes ZeroesEntry(uint64_t offset, uint64_t size, bool fenced = false) {
    Bytes entry(kZeroesSpace, std::byte{0xee});
    WriteZeroes(entry.data(), offset, size, fenced);
    return entry;
  }
  static Bytes Filler(uint64_t space) {
    Bytes entry(space, std::byte{0xee});
    WriteFiller(entry.data(), space);
    return entry;
  }
  static Bytes Joined(std::initializer_list<Bytes> parts) {
    Bytes all;
    for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  static Bytes OfHex(std::string_view hex) {
    Bytes bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
      bytes.push_back(static_cast<std::byte>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
    return bytes;
  }
  template <class T>
  static Bytes With(Bytes bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return bytes;
  }
  // Returns the offsets of the entries that the parser visits, and whether it took all bytes.
  static std::pair<std::vector<uint64_t>, bool> Visited(const Bytes& stream) {
    std::vector<uint64_t> offsets;
    const bool whole = ForEachEntry(stream, kPoolBytes, [&](const Entry& entry) { offsets.push_back(entry.offset); });
    return {offsets, whole};
  }
};

TEST_F(EntryTest, EntriesHaveTheirBytes) {
  EXPECT_EQ(BytesEntry(0x0102030405060708, "hello"), OfHex("0807060504030201"
                                                           "05000000"
                                                           "01000000"
                                                           "68656c6c6f0000000000000000000000"));
  EXPECT_EQ(ZeroesEntry(0x1000, 0x0000000900000000), OfHex("0010000000000000"
                                                           "08000000"
                                                           "02000000"
                                                           "00000000090000000000000000000000"));
  EXPECT_EQ(BytesEntry(8, "after", true), OfHex("0800000000000000"
                                                "05000000"
                                                "01000100"
                                                "61667465720000000000000000000000"));
  EXPECT_EQ(ZeroesEntry(8, 512, true), OfHex("0800000000000000"
                                             "08000000"
                                             "02000100"
                                             "00020000000000000000000000000000"));
  EXPECT_EQ(Filler(32), OfHex("0000000000000000"
                              "10000000"
                              "03000000"
                              "00000000000000000000000000000000"));
  EXPECT_EQ(Filler(16), OfHex("0000000000000000"
                              "00000000"
                              "03000000"));
}

TEST_F(EntryTest, ParserReturnsWhatWasWritten) {
  const std::string longest(kEntryBytesMax, 'x');
  const Bytes stream =
      Joined({BytesEntry(5, "abc"), Filler(16), ZeroesEntry(4096, 70'000, true), BytesEntry(0, longest)});
  std::vector<Entry> entries;
  ASSERT_TRUE(ForEachEntry(stream, kPoolBytes, [&](const Entry& entry) { entries.push_back(entry); }));
  ASSERT_EQ(entries.size(), 3U) << "a filler has no range";
  EXPECT_EQ(entries[0].kind, EntryKind::kBytes);
  EXPECT_EQ(entries[0].offset, 5U);
  EXPECT_EQ(entries[0].size, 3U);
  EXPECT_EQ(AsString(entries[0].bytes), "abc");
  EXPECT_EQ(entries[1].kind, EntryKind::kZeroes);
  EXPECT_EQ(entries[1].offset, 4096U);
  EXPECT_EQ(entries[1].size, 70'000U);
  EXPECT_TRUE(entries[1].bytes.empty());
  EXPECT_EQ(AsString(entries[2].bytes), longest);
  EXPECT_FALSE(entries[0].fenced);
  EXPECT_TRUE(entries[1].fenced);
}

TEST_F(EntryTest, RangesMayEndWithThePool) {
  EXPECT_EQ(Visited(BytesEntry(kPoolBytes - 3, "abc")).second, true);
  EXPECT_EQ(Visited(ZeroesEntry(0, kPoolBytes)).second, true);
}

TEST_F(EntryTest, MalformedEntryEndsTheParsing) {
  constexpr size_t kOffset = offsetof(EntryHeader, offset);
  constexpr size_t kSize = offsetof(EntryHeader, size);
  constexpr size_t kKind = offsetof(EntryHeader, kind);
  constexpr size_t kFence = offsetof(EntryHeader, fence);
  constexpr size_t kBody = sizeof(EntryHeader);
  const uint64_t far = std::numeric_limits<uint64_t>::max() - 1;
  const Bytes bytes = BytesEntry(64, "abc");
  const Bytes zeroes = ZeroesEntry(64, 512);
  const struct {
    const char* what;
    Bytes entry;
  } kCases[] = {
      {"zeroed memory", Bytes(64)},
      {"no kind", With(bytes, kKind, uint16_t{0})},
      {"an unknown kind", With(bytes, kKind, uint16_t{4})},
      {"two fences", With(bytes, kFence, uint16_t{2})},
      {"a filler after a fence", With(Filler(32), kFence, uint16_t{1})},
      {"no bytes", With(bytes, kSize, uint32_t{0})},
      {"more bytes than the stream has", With(bytes, kSize, uint32_t{17})},
      {"more bytes than any stream has", With(bytes, kSize, uint32_t{0xffffffff})},
      {"more bytes than one entry has",
       [] {
         Bytes entry(EntrySpace(kEntryBytesMax + 1));
         WriteBytes(entry.data(), 0, std::span(entry).first(1));
         return With(entry, offsetof(EntryHeader, size), static_cast<uint32_t>(kEntryBytesMax + 1));
       }()},
      {"padding", With(bytes, kBody + 3, uint8_t{1})},
      {"padding at the end", With(bytes, bytes.size() - 1, uint8_t{1})},
      {"an end after the pool", With(bytes, kOffset, uint64_t{kPoolBytes - 2})},
      {"a beginning after the pool", With(bytes, kOffset, uint64_t{kPoolBytes + 1})},
      {"an offset that overflows", With(bytes, kOffset, far)},
      {"zeroes without a length", With(zeroes, kBody, uint64_t{0})},
      {"zeroes after the pool", With(zeroes, kBody, uint64_t{kPoolBytes})},
      {"a length that overflows", With(zeroes, kBody, far)},
      {"zeroes with another size", With(zeroes, kSize, uint32_t{16})},
      {"zeroes with padding", With(zeroes, kBody + 8, uint8_t{1})},
      {"a filler with an offset", With(Filler(32), kOffset, uint64_t{16})},
      {"a filler of another size", With(Filler(32), kSize, uint32_t{15})},
  };
  const std::vector<uint64_t> only_before{8};
  for (const auto& [what, entry] : kCases) {
    const auto [offsets, whole] = Visited(Joined({BytesEntry(8, "before"), entry, BytesEntry(16, "after")}));
    // An entry that claims the bytes of the next one is not the end of the stream.
    if (std::string_view(what) == "more bytes than the stream has") continue;
    EXPECT_FALSE(whole) << what;
    EXPECT_EQ(offsets, only_before) << what;
  }
  for (const auto& [what, entry] : kCases) {
    const auto [offsets, whole] = Visited(Joined({BytesEntry(8, "before"), entry}));
    EXPECT_FALSE(whole) << what;
    EXPECT_EQ(offsets, only_before) << what;
  }
}

TEST_F(EntryTest, WholeEntriesAreCounted) {
  std::vector<std::byte> stream(EntrySpace(20) + kZeroesSpace + EntrySpace(100));
  WriteBytes(stream.data(), 0, std::vector<std::byte>(20));
  WriteZeroes(stream.data() + EntrySpace(20), 64, 4096);
  WriteBytes(stream.data() + EntrySpace(20) + kZeroesSpace, 64, std::vector<std::byte>(100));
  EXPECT_EQ(WholeEntries(stream, 1 << 20), stream.size());
  EXPECT_EQ(WholeEntries(stream, stream.size()), stream.size());
  EXPECT_EQ(WholeEntries(stream, stream.size() - 1), EntrySpace(20) + kZeroesSpace);
  EXPECT_EQ(WholeEntries(std::span(stream).first(EntrySpace(20) + 8), 1 << 20), EntrySpace(20));
  EXPECT_EQ(WholeEntries(stream, EntrySpace(20) - 1), 0U);
  EXPECT_EQ(WholeEntries({}, 100), 0U);
}

TEST_F(EntryTest, CutOffEntryIsNotVisited) {
  const Bytes first = BytesEntry(8, "a first entry of 30 bytes. . .");
  const Bytes stream = Joined({first, ZeroesEntry(64, 512)});
  for (size_t size = 0; size <= stream.size(); ++size) {
    const auto [offsets, whole] = Visited(Bytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_EQ(offsets.size(), size == stream.size() ? 2U : size >= first.size() ? 1U : 0U) << size;
    EXPECT_EQ(whole, size == 0 || size == first.size() || size == stream.size()) << size;
  }
}

// The address sanitizer sees a look past the bytes.
TEST_F(EntryTest, RandomBytesAreSafe) {
  Random random(1);
  for (int round = 0; round < 20'000; ++round) {
    Bytes stream;
    for (uint64_t entries = random.Uniform(4); entries > 0; --entries) {
      const uint64_t offset = random.Uniform(kPoolBytes + 64);
      const std::string text(random.Between(1, 100), 'x');
      const uint64_t kind = random.Uniform(3);
      stream = Joined({stream, kind == 0   ? BytesEntry(offset, text)
                               : kind == 1 ? ZeroesEntry(offset, random.Between(1, kPoolBytes))
                                           : Filler(16 * random.Between(1, 8))});
    }
    const uint64_t garbage = random.Uniform(64);
    for (uint64_t i = 0; i < garbage; ++i) stream.push_back(static_cast<std::byte>(random.Next()));
    for (uint64_t flips = random.Uniform(3); flips > 0 && !stream.empty(); --flips)
      stream[random.Uniform(stream.size())] ^= static_cast<std::byte>(1 << random.Uniform(8));
    stream.shrink_to_fit();
    (void)ForEachEntry(stream, kPoolBytes, [&](const Entry& entry) {
      ASSERT_GT(entry.size, 0U);
      ASSERT_LE(entry.offset, kPoolBytes);
      ASSERT_LE(entry.size, kPoolBytes - entry.offset);
      if (entry.kind == EntryKind::kZeroes) return;
      ASSERT_EQ(entry.bytes.size(), entry.size);
      ASSERT_GE(entry.bytes.data(), stream.data());
      ASSERT_LE(entry.bytes.data() + entry.size, stream.data() + stream.size());
    });
  }
}

TEST_F(EntryTest, PiecesOfALongFlushTearNoWord) {
  Random random(2);
  for (int round = 0; round < 1000; ++round) {
    uint64_t offset = random.Uniform(kPoolBytes);
    uint64_t size = random.Between(1, 5 * kEntryBytesMax);
    while (size > 0) {
      const uint64_t piece = FirstPiece(offset, size);
      ASSERT_GT(piece, 0U);
      ASSERT_LE(piece, std::min(size, kEntryBytesMax));
      offset += piece;
      size -= piece;
      ASSERT_TRUE(size == 0 || offset % sizeof(uint64_t) == 0) << offset;
    }
  }
  EXPECT_EQ(FirstPiece(0, 2 * kEntryBytesMax), kEntryBytesMax);
  EXPECT_EQ(FirstPiece(kEntryBytesMax, kEntryBytesMax), kEntryBytesMax);
  EXPECT_EQ(FirstPiece(5, 3), 3U);
}

}  // namespace
}  // namespace erda::journal
