#include "journal/apply.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "base/unique_fd.h"
#include "journal/entry.h"
#include "journal/recording_pool.h"
#include "journal/simulated_files.h"
#include "journal/synced_file.h"

namespace erda::journal {
namespace {

class ApplyTest : public testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;
  static constexpr uint64_t kPoolBytes = 64 << 10;

  static void AddBytes(Bytes* stream, uint64_t offset, std::string_view bytes, bool fenced = false) {
    const size_t at = stream->size();
    stream->resize(at + EntrySpace(bytes.size()));
    WriteBytes(stream->data() + at, offset, AsBytes(bytes), fenced);
  }
  static void AddZeroes(Bytes* stream, uint64_t offset, uint64_t size, bool fenced = false) {
    const size_t at = stream->size();
    stream->resize(at + kZeroesSpace);
    WriteZeroes(stream->data() + at, offset, size, fenced);
  }
  static void AddFiller(Bytes* stream, uint64_t space) {
    const size_t at = stream->size();
    stream->resize(at + space);
    WriteFiller(stream->data() + at, space);
  }
  static Bytes AnyBytes(Random& random, uint64_t size) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
    return bytes;
  }
  // Appends an entry like those of a shard: often at the same places, and often directly after the one before.
  static void AddAny(Random& random, Bytes* stream, uint64_t* last_end) {
    if (random.Chance(0.05)) return AddFiller(stream, 16 * random.Between(1, 4));
    const uint64_t size = random.Between(1, random.Chance(0.1) ? 9000 : 200);
    const uint64_t places[] = {random.Uniform(kPoolBytes - size), 4000 + 8 * random.Uniform(64), *last_end};
    uint64_t offset = places[random.Uniform(3)];
    if (offset + size > kPoolBytes) offset = 0;
    *last_end = offset + size;
    if (random.Chance(0.2)) return AddZeroes(stream, offset, size);
    AddBytes(stream, offset, AsString(AnyBytes(random, size)));
  }

  // A stream, the places between its entries, and the pool at each of them.
  struct Run {
    Bytes stream;
    std::vector<size_t> places{0};
    std::vector<Bytes> pools;

    Run(Random& random, size_t entries) {
      pools.push_back(AnyBytes(random, kPoolBytes));
      uint64_t last_end = 0;
      while (places.size() <= entries) {
        AddAny(random, &stream, &last_end);
        Bytes pool = pools.back();
        // One entry at a time, by hand.
        const auto entry = ParseEntry(std::span(stream).subspan(places.back()), kPoolBytes);
        EXPECT_TRUE(entry.has_value());
        for (uint64_t i = 0; entry->kind != EntryKind::kFiller && i < entry->size; ++i)
          pool[entry->offset + i] = entry->kind == EntryKind::kBytes ? entry->bytes[i] : std::byte{0};
        pools.push_back(std::move(pool));
        places.push_back(stream.size());
      }
    }
    [[nodiscard]] std::span<const std::byte> Between(size_t from, size_t to) const {
      return std::span(stream).subspan(places[from], places[to] - places[from]);
    }
  };

  // Makes the file of these bytes.
  [[nodiscard]] UniqueFd FileOf(const Bytes& bytes) const { return FileOf(bytes, folder_ / "pool"); }
  [[nodiscard]] static UniqueFd FileOf(const Bytes& bytes, const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    EXPECT_TRUE(fd);
    EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  static Bytes BytesIn(const UniqueFd& fd) {
    Bytes bytes(8 * kPoolBytes);
    const ssize_t size = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return bytes;
  }

  const TemporaryFolder folder_;
};

TEST_F(ApplyTest, MemoryAndFileGetTheRanges) {
  Bytes stream;
  AddBytes(&stream, 100, "hello");
  AddBytes(&stream, 105, ", world");
  AddFiller(&stream, 64);
  AddZeroes(&stream, 102, 2);
  AddBytes(&stream, kPoolBytes - 1, "z");
  Bytes expected(kPoolBytes, std::byte{'-'});
  std::memcpy(expected.data() + 100, "he\0\0o, world", 12);
  expected.back() = std::byte{'z'};

  Bytes memory(kPoolBytes, std::byte{'-'});
  const UniqueFd file = FileOf(memory);
  ASSERT_TRUE(ApplyToMemory(stream, memory).ok());
  EXPECT_EQ(memory, expected);
  ASSERT_TRUE(ApplyToFile(stream, file.get(), kPoolBytes).ok());
  EXPECT_EQ(BytesIn(file), expected);
  EXPECT_TRUE(ApplyToMemory({}, memory).ok());
  EXPECT_TRUE(ApplyToFile({}, file.get(), kPoolBytes).ok());
  EXPECT_EQ(BytesIn(file), expected);
}

TEST_F(ApplyTest, MirrorHasTheFencesOfTheStreamAndOneAtTheEnd) {
  Bytes stream;
  AddBytes(&stream, 103, "nothing is before it", true);
  AddBytes(&stream, 200, "12345678");
  AddZeroes(&stream, 210, 300, true);
  AddBytes(&stream, 8, "last", true);
  RecordingPool mirror{Bytes(kPoolBytes, std::byte{'-'})};
  nvm::Writer writer(mirror);
  ASSERT_TRUE(ApplyToPool(stream, writer).ok());
  EXPECT_EQ(mirror.Taken(), (std::vector<std::string>{"103+20", "200+8", "fence", "210+300", "fence", "8+4", "fence"}));
  EXPECT_EQ(AsString(mirror.bytes().subspan(100, 26)), "---nothing is before it---");
  ASSERT_TRUE(ApplyToPool({}, writer).ok());
  EXPECT_TRUE(mirror.Taken().empty());
}

TEST_F(ApplyTest, MirrorStopsAtAMalformedEntry) {
  Bytes stream;
  AddBytes(&stream, 8, "before");
  AddBytes(&stream, kPoolBytes, "after the pool");
  AddBytes(&stream, 16, "behind");
  RecordingPool mirror{Bytes(kPoolBytes, std::byte{'-'})};
  nvm::Writer writer(mirror);
  EXPECT_EQ(ApplyToPool(stream, writer).code(), Code::kCorruption);
  EXPECT_EQ(mirror.Taken(), std::vector<std::string>{"8+6"});
  EXPECT_EQ(AsString(mirror.bytes().subspan(8, 14)), "before--------");
}

TEST_F(ApplyTest, RandomStreamsGiveTheSameInAll) {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    const Run run(random, random.Between(1, 600));
    Bytes memory = run.pools.front();
    const UniqueFd file = FileOf(memory);
    ASSERT_TRUE(ApplyToMemory(run.stream, memory).ok());
    EXPECT_TRUE(memory == run.pools.back()) << round;
    ASSERT_TRUE(ApplyToFile(run.stream, file.get(), kPoolBytes).ok());
    EXPECT_TRUE(BytesIn(file) == run.pools.back()) << round;
    RecordingPool mirror(run.pools.front());
    nvm::Writer writer(mirror);
    ASSERT_TRUE(ApplyToPool(run.stream, writer).ok());
    EXPECT_TRUE(AsString(mirror.bytes()) == AsString(run.pools.back())) << round;
  }
}

// Each page of the file gets one write, and no page that has no entry.
TEST_F(ApplyTest, EntriesNearEachOtherShareAWrite) {
  Random random(3);
  for (const auto& [step, writes] : {std::pair{100, 1}, {5000, 3}, {3 * 4096, 6}}) {
    SimulatedFiles files(1);
    Bytes stream;
    for (int round = 0; round < 3; ++round) {
      for (uint64_t at = 0; at < kPoolBytes; at += step) AddBytes(&stream, at, AsString(AnyBytes(random, 8)));
    }
    Bytes pool = AnyBytes(random, kPoolBytes);
    const UniqueFd file = FileOf(pool, files.pool());
    const uint64_t before = files.calls();
    ASSERT_TRUE(ApplyToFile(stream, file.get(), kPoolBytes).ok());
    EXPECT_EQ(files.calls() - before, writes) << step;
    ASSERT_TRUE(ApplyToMemory(stream, pool).ok());
    EXPECT_TRUE(BytesIn(file) == pool) << step;
  }
}

// More bytes than are joined at once, again and again at the same places.
TEST_F(ApplyTest, LastBytesCountInALongStream) {
  Random random(4);
  Bytes stream;
  uint64_t last_end = 0;
  while (stream.size() < (9 << 20)) AddAny(random, &stream, &last_end);
  Bytes pool = AnyBytes(random, kPoolBytes);
  const UniqueFd file = FileOf(pool);
  ASSERT_TRUE(ApplyToFile(stream, file.get(), kPoolBytes).ok());
  ASSERT_TRUE(ApplyToMemory(stream, pool).ok());
  EXPECT_TRUE(BytesIn(file) == pool);
}

// More pieces than one write takes, all of them directly one after the other.
TEST_F(ApplyTest, ManyAdjacentEntriesAreAllWritten) {
  Bytes stream;
  for (uint64_t at = 0; at < kPoolBytes; at += 32) AddBytes(&stream, at, std::string(32, static_cast<char>(at / 32)));
  const UniqueFd file = FileOf(Bytes(kPoolBytes, std::byte{0xee}));
  ASSERT_TRUE(ApplyToFile(stream, file.get(), kPoolBytes).ok());
  const Bytes written = BytesIn(file);
  ASSERT_EQ(written.size(), kPoolBytes);
  for (uint64_t at = 0; at < kPoolBytes; ++at) ASSERT_EQ(written[at], static_cast<std::byte>(at / 32)) << at;
}

TEST_F(ApplyTest, LongZeroesAreWritten) {
  constexpr uint64_t kLong = 5 * kPoolBytes;
  Bytes stream;
  AddZeroes(&stream, 100, kLong - 200);
  const UniqueFd file = FileOf(Bytes(kLong, std::byte{'x'}));
  ASSERT_TRUE(ApplyToFile(stream, file.get(), kLong).ok());
  const Bytes written = BytesIn(file);
  ASSERT_EQ(written.size(), kLong);
  EXPECT_EQ(AsString(written).substr(0, 100), std::string(100, 'x'));
  EXPECT_TRUE(IsZero(std::span(written).subspan(100, kLong - 200)));
  EXPECT_EQ(AsString(written).substr(kLong - 100), std::string(100, 'x'));
}

// A file system zeroes such a range without a write, between the writes before and after it.
TEST_F(ApplyTest, LongZeroesKeepTheirPlaceInTheOrder) {
  constexpr uint64_t kLong = 5 * kPoolBytes;
  constexpr uint64_t kZeroes = 100'000;
  Bytes stream;
  AddBytes(&stream, 50'000, "overwritten");
  AddZeroes(&stream, 1000, kZeroes);
  AddBytes(&stream, 70'000, "after");
  AddZeroes(&stream, 1000 + kZeroes, 10);
  // The second one refuses to zero a range.
  for (const std::filesystem::path& folder : {std::filesystem::temp_directory_path(), {"/dev/shm"}}) {
    const TemporaryFolder there(folder);
    const UniqueFd file = FileOf(Bytes(kLong, std::byte{'x'}), there / "pool");
    ASSERT_TRUE(ApplyToFile(stream, file.get(), kLong).ok());
    Bytes expected(kLong, std::byte{'x'});
    std::fill_n(expected.begin() + 1000, kZeroes + 10, std::byte{});
    std::memcpy(expected.data() + 70'000, "after", 5);
    EXPECT_TRUE(BytesIn(file) == expected) << folder;
  }
}

// The stream is applied up to `applied`, and synced up to `checkpoint`. The kernel wrote each part of the file at any
// moment since. After a power cut, all from the checkpoint on is applied again, and perhaps more.
TEST_F(ApplyTest, ApplyingAgainMendsPagesOfAnyMoment) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const Run run(random, 40);
    const size_t checkpoint = random.Uniform(run.places.size());
    const size_t applied = random.Between(checkpoint, run.places.size() - 1);
    const size_t held = random.Between(applied, run.places.size() - 1);
    Bytes pool(kPoolBytes);
    // Finer than a page: a power cut may also tear a page.
    for (uint64_t at = 0; at < kPoolBytes; at += 512)
      std::memcpy(pool.data() + at, run.pools[random.Between(checkpoint, applied)].data() + at, 512);
    const UniqueFd file = FileOf(pool);
    ASSERT_TRUE(ApplyToMemory(run.Between(checkpoint, held), pool).ok());
    EXPECT_TRUE(pool == run.pools[held]) << round;
    ASSERT_TRUE(ApplyToFile(run.Between(checkpoint, held), file.get(), kPoolBytes).ok());
    EXPECT_TRUE(BytesIn(file) == run.pools[held]) << round;
    // A restart that was cut off, too, applies a part and begins again.
    const size_t part = random.Between(checkpoint, held);
    ASSERT_TRUE(ApplyToMemory(run.Between(checkpoint, part), pool).ok());
    ASSERT_TRUE(ApplyToMemory(run.Between(checkpoint, held), pool).ok());
    EXPECT_TRUE(pool == run.pools[held]) << round;
  }
}

TEST_F(ApplyTest, MalformedEntryEndsIt) {
  Bytes stream;
  AddBytes(&stream, 8, "before");
  const size_t malformed = stream.size();
  AddBytes(&stream, kPoolBytes - 4, "goes past the pool");
  AddBytes(&stream, 24, "after");
  Bytes expected(kPoolBytes, std::byte{'-'});
  std::memcpy(expected.data() + 8, "before", 6);
  for (const size_t size : {stream.size(), malformed + 8}) {
    const auto part = std::span(stream).first(size);
    Bytes memory(kPoolBytes, std::byte{'-'});
    const UniqueFd file = FileOf(memory);
    EXPECT_EQ(ApplyToMemory(part, memory).code(), Code::kCorruption);
    EXPECT_EQ(memory, expected);
    EXPECT_EQ(ApplyToFile(part, file.get(), kPoolBytes).code(), Code::kCorruption);
    EXPECT_EQ(BytesIn(file), expected);
  }
}

TEST_F(ApplyTest, FailedWriteIsReturned) {
  Bytes stream;
  AddBytes(&stream, 8, "text");
  AddZeroes(&stream, 12'288, 100'000 - 12'288);
  const UniqueFd full(::open("/dev/full", O_WRONLY));
  ASSERT_TRUE(full);
  const Status status = ApplyToFile(stream, full.get(), 100'000);
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
  EXPECT_NE(status.message().find("4 bytes at offset 8"), std::string_view::npos) << status.ToString();
  (void)FileOf({});
  const UniqueFd read_only(::open((folder_ / "pool").c_str(), O_RDONLY));
  EXPECT_FALSE(ApplyToFile(stream, read_only.get(), 100'000).ok());
}

// A checkpoint's bytes go to the disk piece by piece. The kernel tells an error of a piece once. The sync after it must
// return that error, since it frees the ring.
TEST_F(ApplyTest, ErrorOfAPieceIsToldToTheSync) {
  constexpr uint64_t kPieces = 4;
  constexpr uint64_t kLong = kPieces * Writeback::kPieceBytes;
  Bytes stream;
  for (uint64_t at = 0; at < kLong; at += 4096) AddBytes(&stream, at, std::string(4096, 'x'));
  for (uint64_t call = 0; call < 20; ++call) {
    SimulatedFiles files(call + 1);
    UniqueFd fd(::open(files.pool().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(fd.get(), kLong), 0);
    SyncedFile file(std::move(fd), files.pool());
    Writeback writeback(file.fd());
    files.FailAt(call);
    const bool done = ApplyToFile(stream, file.fd(), kLong, &writeback).ok() && file.Sync().ok();
    EXPECT_EQ(done, !files.failed()) << call;
    EXPECT_EQ(files.failed(), call < 2 * kPieces + 1) << call << ": a write and a start for each piece, and a sync";
    EXPECT_TRUE(!done || files.writebacks() == kPieces) << files.writebacks();
  }
}

// The limit on a file's size makes the kernel take a part of a write, and refuse the rest.
TEST_F(ApplyTest, WriteThatTakesAPartGoesOnOrFails) {
  Bytes stream;
  for (uint64_t at = 0; at < 4000; at += 40) AddBytes(&stream, at, std::string(40, 'x'));
  AddBytes(&stream, 20'000, "never written");
  const UniqueFd file = FileOf({});
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignored, &before), 0);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = 1010;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = ApplyToFile(stream, file.get(), kPoolBytes);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ASSERT_EQ(::sigaction(SIGXFSZ, &before, nullptr), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(BytesIn(file), Bytes(1010, std::byte{'x'}));
}

}  // namespace
}  // namespace erda::journal
