#include "journal/stream.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "journal/stream_fixture.h"

namespace erda::journal {
namespace {

class StreamTest : public testing::Test {
 protected:
  static constexpr Uuid kUuid{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  static constexpr uint32_t kShard = 3;
  static constexpr uint64_t kCapacity = Stream::kCapacityMin;
  static constexpr uint64_t kPoolBytes = 1 << 20;
  using Entries = std::vector<FoundEntry>;

  // Makes an empty stream. If that fails, the test aborts.
  Stream MustFormat(Place first = 0) const {
    auto stream = Stream::Format(memory_.bytes(), kUuid, kShard, first);
    return stream.value();
  }
  [[nodiscard]] StreamHeader& header() const { return *reinterpret_cast<StreamHeader*>(memory_.bytes().data()); }
  static Entries Between(const Stream& stream, Place from, Place to) {
    return EntriesIn(stream.Bytes(from, to), kPoolBytes);
  }
  // Returns the bytes of an entry of a test. The size follows from the number, and the bytes begin with it.
  static std::string NumberedBytes(uint64_t number) {
    Random random(number);
    std::string bytes(random.Chance(0.01) ? random.Between(8, kEntryBytesMax) : random.Between(8, 200),
                      static_cast<char>(number));
    std::memcpy(bytes.data(), &number, sizeof(number));
    return bytes;
  }

  const SharedPages memory_{Stream::MemoryFor(kCapacity)};
};

TEST_F(StreamTest, NewStreamIsEmpty) {
  const Stream stream = MustFormat();
  EXPECT_EQ(stream.end(), 0U);
  EXPECT_EQ(stream.released(), 0U);
  EXPECT_EQ(stream.capacity(), kCapacity);
  EXPECT_EQ(stream.room(), kCapacity);
  EXPECT_TRUE(Between(stream, 0, 0).empty());
}

TEST_F(StreamTest, HeaderHasItsBytes) {
  std::ranges::fill(memory_.bytes(), std::byte{0xee});
  MustFormat(0x1230);
  std::string expected("ERDASTRM");
  expected += std::string_view("\1\0\0\0\3\0\0\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20", 24);
  expected += std::string_view("\0\0\4\0\0\0\0\0", 8);
  expected.resize(64);
  expected += "\x30\x12";
  expected.resize(128);
  expected += "\x30\x12";
  expected.resize(Stream::kHeaderBytes);
  EXPECT_EQ(AsString(memory_.bytes().first(Stream::kHeaderBytes)), expected);
}

TEST_F(StreamTest, AppendedEntriesAreReadInOrder) {
  Stream stream = MustFormat();
  ASSERT_TRUE(stream.Append(100, AsBytes("first")));
  const Place middle = stream.end();
  ASSERT_TRUE(stream.AppendZeroes(300, 400));
  ASSERT_TRUE(stream.Append(100, AsBytes("second")));
  EXPECT_EQ(middle, EntrySpace(5));
  EXPECT_EQ(stream.end(), middle + kZeroesSpace + EntrySpace(6));
  EXPECT_EQ(stream.room(), kCapacity - stream.end());
  const Entries all{FoundEntry::Bytes(100, "first"), FoundEntry::Zeroes(300, 400), FoundEntry::Bytes(100, "second")};
  EXPECT_EQ(Between(stream, 0, stream.end()), all);
  EXPECT_EQ(Between(stream, middle, stream.end()), Entries(all.begin() + 1, all.end()));
}

TEST_F(StreamTest, FullStreamTakesNothing) {
  Stream stream = MustFormat();
  const std::string text(1008, 'x');  // 1 KiB with its header.
  for (uint64_t i = 0; i < kCapacity / 1024; ++i) ASSERT_TRUE(stream.Append(i * 1024, AsBytes(text)));
  EXPECT_EQ(stream.room(), 0U);
  const std::vector<std::byte> before(memory_.bytes().begin(), memory_.bytes().end());
  EXPECT_FALSE(stream.Append(0, AsBytes("y")));
  EXPECT_FALSE(stream.AppendZeroes(0, 4096));
  EXPECT_EQ(std::memcmp(memory_.bytes().data(), before.data(), before.size()), 0);

  stream.Release(1024);
  EXPECT_EQ(stream.room(), 1024U);
  EXPECT_FALSE(stream.Append(0, AsBytes(text + "x")));
  EXPECT_TRUE(stream.Append(0, AsBytes(text)));
  EXPECT_EQ(stream.end(), kCapacity + 1024);
  EXPECT_FALSE(stream.Append(0, AsBytes("y")));
}

// The space before the end of the area is too short, and the filler there needs room, too.
TEST_F(StreamTest, FillerCountsAsNeededRoom) {
  Stream stream = MustFormat(kCapacity - 64);
  ASSERT_TRUE(stream.Append(0, AsBytes("y")));  // 32 bytes: 32 are left.
  const std::string text(kEntryBytesMax, 'x');
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.Append(0, AsBytes(text)));
  ASSERT_TRUE(stream.Append(0, AsBytes(std::string(kEntryBytesMax - 1024, 'x'))));
  const auto entries = Between(stream, stream.released(), stream.end());
  EXPECT_EQ(entries.size(), 5U);
  EXPECT_EQ(stream.Bytes(stream.released(), kCapacity)[0].size(), 64U);

  // The same at the end of the area, with the room for the entry alone.
  Stream full = MustFormat(kCapacity - 64);
  ASSERT_TRUE(full.AppendZeroes(0, 256));
  full.Release(kCapacity - 32);
  const Place end = full.end();
  ASSERT_EQ(end, kCapacity - 32);
  header().released = end + EntrySpace(40) - kCapacity;  // Room for 64 bytes, of which 32 are before the end.
  ASSERT_EQ(full.room(), EntrySpace(40));
  EXPECT_FALSE(full.Append(0, AsBytes(std::string(40, 'x'))));
  EXPECT_EQ(full.end(), end);
  EXPECT_TRUE(full.Append(0, AsBytes(std::string(16, 'x')))) << "it fits before the end";
}

TEST_F(StreamTest, StreamMayBeginAnywhere) {
  constexpr Place kFirst = 5 * kCapacity + 48;
  Stream stream = MustFormat(kFirst);
  EXPECT_EQ(stream.room(), kCapacity);
  ASSERT_TRUE(stream.Append(7, AsBytes("text")));
  EXPECT_EQ(stream.end(), kFirst + EntrySpace(4));
  EXPECT_EQ(Between(stream, kFirst, stream.end()), Entries{FoundEntry::Bytes(7, "text")});
  EXPECT_EQ(stream.Bytes(kFirst, stream.end())[0].data(), memory_.bytes().data() + Stream::kHeaderBytes + 48);
}

TEST_F(StreamTest, NoEntryGoesPastTheEndOfTheArea) {
  Random random(1);
  Stream stream = MustFormat();
  std::deque<FoundEntry> expected;
  const auto take = [&] {
    // Up to any place between two entries.
    const Place from = stream.released();
    const Place to = stream.Cut(from, random.Between(kEntrySpaceMax, kCapacity));
    for (const FoundEntry& found : Between(stream, from, to)) {
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(found, expected.front());
      expected.pop_front();
    }
    stream.Release(to);
  };
  for (int i = 0; i < 20'000 && !HasFailure(); ++i) {
    const bool zeroes = random.Chance(0.2);
    const uint64_t size = random.Between(1, random.Chance(0.02) ? kEntryBytesMax : 300);
    const std::string bytes(size, static_cast<char>('a' + i % 26));
    const uint64_t offset = random.Uniform(kPoolBytes - size);
    while (!(zeroes ? stream.AppendZeroes(offset, size) : stream.Append(offset, AsBytes(bytes))) && !HasFailure())
      take();
    expected.push_back(zeroes ? FoundEntry::Zeroes(offset, size) : FoundEntry::Bytes(offset, bytes));
    if (random.Chance(0.001)) take();
  }
  while (stream.released() < stream.end() && !HasFailure()) take();
  EXPECT_TRUE(expected.empty());
  EXPECT_GT(stream.end(), 20 * kCapacity);
}

TEST_F(StreamTest, CutReturnsTheLastPlaceBetweenEntries) {
  Stream stream = MustFormat();
  EXPECT_EQ(stream.Cut(0, kEntrySpaceMax), 0U);
  const std::string text(48, 'x');  // 64 bytes.
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(stream.Append(0, AsBytes(text)));
  EXPECT_EQ(stream.Cut(0, kCapacity), stream.end());
  EXPECT_EQ(stream.Cut(0, stream.end()), stream.end());
  EXPECT_EQ(stream.Cut(0, stream.end() - 1), stream.end() - 64);
  EXPECT_EQ(stream.Cut(0, 1100 * 64), 1100 * 64U);
  EXPECT_EQ(stream.Cut(64, kEntrySpaceMax), 64 + AlignDown(kEntrySpaceMax, 64));
  ASSERT_TRUE(stream.Append(0, AsBytes(std::string(kEntryBytesMax, 'x'))));
  EXPECT_EQ(stream.Cut(stream.end() - kEntrySpaceMax, kEntrySpaceMax), stream.end());
  EXPECT_EQ(stream.Cut(stream.end() - kEntrySpaceMax - 64, kEntrySpaceMax), stream.end() - kEntrySpaceMax);
}

TEST_F(StreamTest, OpenGoesOn) {
  {
    Stream stream = MustFormat(160);
    ASSERT_TRUE(stream.Append(1, AsBytes("one")));
    stream.Release(stream.end());
    ASSERT_TRUE(stream.Append(2, AsBytes("two")));
  }
  auto stream = Stream::Open(memory_.bytes(), kUuid, kShard);
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  ASSERT_TRUE(stream->Append(3, AsBytes("three")));
  EXPECT_EQ(stream->released(), 160 + EntrySpace(3));
  EXPECT_EQ(Between(*stream, stream->released(), stream->end()),
            (Entries{FoundEntry::Bytes(2, "two"), FoundEntry::Bytes(3, "three")}));
}

TEST_F(StreamTest, FormatRefusesOtherMemory) {
  const auto refuses = [&](size_t size, Place first) {
    const auto stream = Stream::Format(memory_.bytes().first(size), kUuid, kShard, first);
    return !stream.ok() && stream.status().code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refuses(0, 0));
  EXPECT_TRUE(refuses(Stream::kHeaderBytes, 0));
  EXPECT_TRUE(refuses(Stream::MemoryFor(kCapacity) - 4096, 0));
  EXPECT_TRUE(refuses(Stream::MemoryFor(kCapacity / 2), 0));
  EXPECT_TRUE(refuses(Stream::MemoryFor(kCapacity), 8));
  EXPECT_FALSE(refuses(Stream::MemoryFor(kCapacity), 16));
}

TEST_F(StreamTest, OpenRefusesWhatIsNoSuchStream) {
  const auto message = [&](Code code) -> std::string {
    const auto stream = Stream::Open(memory_.bytes(), kUuid, kShard);
    if (stream.ok()) return "it was opened";
    EXPECT_EQ(stream.status().code(), code) << stream.status().ToString();
    EXPECT_NE(stream.status().message().find("shard 3"), std::string_view::npos);
    return std::string(stream.status().message());
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(message(Code::kCorruption), "does not begin as a stream")) << "zeroes";
  MustFormat();
  EXPECT_EQ(message(Code::kOk), "it was opened");

  header().version = 2;
  EXPECT_TRUE(has(message(Code::kInvalidArgument), "version 2"));
  MustFormat();
  header().uuid[15] = 0;
  EXPECT_TRUE(has(message(Code::kInvalidArgument), "another pool"));
  MustFormat();
  header().shard = 4;
  EXPECT_TRUE(has(message(Code::kInvalidArgument), "has shard 4"));
  MustFormat();
  header().capacity = 2 * kCapacity;
  EXPECT_TRUE(has(message(Code::kInvalidArgument), "area of 524288 bytes"));
  const struct {
    uint64_t released;
    uint64_t end;
  } kPlaces[] = {{32, 16}, {0, kCapacity + 16}, {8, 16}, {0, 24}, {~uint64_t{15}, 0}};
  for (const auto& [released, end] : kPlaces) {
    MustFormat();
    header().released = released;
    header().end = end;
    EXPECT_TRUE(has(message(Code::kCorruption), "places are damaged")) << released << ", " << end;
  }
  const auto smaller = Stream::Open(memory_.bytes().first(8192), kUuid, kShard);
  ASSERT_FALSE(smaller.ok());
  EXPECT_EQ(smaller.status().code(), Code::kInvalidArgument);
}

TEST_F(StreamTest, TheDisksThreadSeesWholeEntriesAlone) {
#ifdef ERDA_SANITIZED
  constexpr uint64_t kEntries = 10'000;
#else
  constexpr uint64_t kEntries = 100'000;
#endif
  Stream stream = MustFormat();
  std::atomic<bool> stop = false;  // After a failure nobody makes room.
  std::thread shard([stream, &stop]() mutable {
    for (uint64_t number = 0; number < kEntries; ++number) {
      const std::string bytes = NumberedBytes(number);
      while (!stream.Append(number, AsBytes(bytes)) && !stop) std::this_thread::yield();
    }
  });
  uint64_t number = 0;
  while (number < kEntries && !HasFailure()) {
    const Place from = stream.released();
    const Place to = stream.Cut(from, kEntrySpaceMax + 4096);
    if (from == to) std::this_thread::yield();
    for (const FoundEntry& found : Between(stream, from, to)) {
      EXPECT_EQ(found.offset, number);
      EXPECT_EQ(found.bytes, NumberedBytes(number));
      ++number;
    }
    EXPECT_LE(stream.room(), kCapacity);
    stream.Release(to);
  }
  stop = true;
  shard.join();
  EXPECT_EQ(number, kEntries);
  EXPECT_EQ(stream.released(), stream.end());
}

// A child appends and releases until it is killed. The entries that it leaves are whole and without a gap, and the next
// child goes on.
TEST_F(StreamTest, KilledShardLeavesWholeEntries) {
  Random random(3);
  MustFormat();
  uint64_t next = 0;  // The number of the next entry.
  for (int kill = 0; kill < 40; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto stream = Stream::Open(memory_.bytes(), kUuid, kShard);
      if (!stream.ok()) ::_exit(1);
      for (uint64_t number = next;; ++number) {
        const std::string bytes = NumberedBytes(number);
        while (!stream->Append(number % 1000, AsBytes(bytes)))
          stream->Release(stream->Cut(stream->released(), kEntrySpaceMax));
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Between(200, 5000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended before it was killed";

    auto stream = Stream::Open(memory_.bytes(), kUuid, kShard);
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    const auto entries = Between(*stream, stream->released(), stream->end());
    ASSERT_FALSE(HasFailure());
    if (entries.empty()) continue;
    const uint64_t first = LoadAs<uint64_t>(AsBytes(entries.front().bytes));
    for (uint64_t i = 0; i < entries.size(); ++i) ASSERT_EQ(entries[i].bytes, NumberedBytes(first + i)) << kill;
    ASSERT_GE(first + entries.size(), next);
    next = first + entries.size();
  }
  EXPECT_GT(next, 0U);
}

}  // namespace
}  // namespace erda::journal
