// The copy of a primary's pool, over every fabric, while the primary changes the pool and two followers store that.
#include "mirror/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/random.h"
#include "fabric/fixture.h"
#include "format/hello.h"
#include "format/mirror_link.h"
#include "format/superblock.h"
#include "journal/entry.h"
#include "journal/recording_pool.h"
#include "journal/stream.h"
#include "mirror/feed.h"
#include "mirror/fixture.h"
#include "mirror/follower.h"
#include "nvm/writer.h"
#include "server/crash_pool.h"

namespace erda::mirror {
namespace {

using fabric::Event;
using fabric::OpKind;
using journal::Place;
using journal::Stream;

class CopyTest : public fabric::FabricTest {
 protected:
  static constexpr uint64_t kFirst = format::kShardRecordsOffset;
  static constexpr uint64_t kPieceBytes = 16 << 10;
  // A part of a piece, and a part of a cache line.
  static constexpr uint64_t kPoolBytes = (256 << 10) + 5000;
  static_assert((kPoolBytes - kFirst) % kPieceBytes % kCacheLine != 0 && kPoolBytes % sizeof(uint64_t) == 0);
  // The shards own the blocks of the pool in turn.
  static constexpr uint64_t kBlockBytes = 1000;
  static constexpr uint32_t kShards = 2;

  // One shard of the primary, its follower, and their channel.
  struct Shard {
    std::optional<Stream> stream;
    SharedMemory ring;
    std::unique_ptr<fabric::Region> ring_region;
    std::unique_ptr<fabric::Channel> primary;
    std::unique_ptr<fabric::Channel> mirror;
    std::optional<Feed> feed;
    std::optional<Follower> follower;
  };

  void SetUp() override {
    FabricTest::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakePools(kPoolBytes));
    for (uint32_t i = 0; i < kShards; ++i) {
      auto stream = Stream::Format(server_.bytes(size_t{i} << 21, Stream::MemoryFor(Stream::kCapacityMin)), {}, i,
                                   4096 * (i + 1), {{7, 8, 9}, 0});
      ASSERT_TRUE(stream.ok()) << stream.status().ToString();
      shards_[i].stream.emplace(*stream);
    }
  }
  void TearDown() override { Unlink(); }

  // --- The pools

  // The primary's pool has random bytes, and zeroes in places. The mirror's has others.
  void MakePools(uint64_t bytes) {
    auto image = SharedMemory::Create("erda-image", bytes);
    ASSERT_TRUE(image.ok()) << image.status().ToString();
    pool_region_.reset();
    image_memory_ = *std::move(image);
    MemoryView view = image_memory_.view();
    view.bytes = view.bytes.first(bytes);
    image_ = view.bytes;
    auto region = server_.fabric->Register(view, fabric::Access::kRemoteRead);
    ASSERT_TRUE(region.ok()) << region.status().ToString();
    pool_region_ = *std::move(region);
    fabric::Put(image_, fabric::Pattern(bytes, 1));
    std::ranges::fill(image_.subspan(bytes / 2, bytes / 4), std::byte{0});
    std::vector<uint64_t> words(bytes / sizeof(uint64_t));
    fabric::Put(std::as_writable_bytes(std::span(words)), fabric::Pattern(words.size() * sizeof(uint64_t), 2));
    UseCrashPool({words, words});
  }
  void UseCrashPool(server::CrashPool::Images images) {
    auto pool = std::make_unique<server::CrashPool>(std::move(images), nvm::Durability::kPowerSafe);
    crash_pool_ = pool.get();
    UsePool(std::move(pool));
  }
  void UsePool(std::unique_ptr<nvm::Pool> pool) {
    writer_.emplace(*pool);
    pool_ = std::move(pool);
    superblocks_.assign(pool_->bytes().begin(), pool_->bytes().begin() + kFirst);
  }
  [[nodiscard]] std::vector<uint64_t> ImageWords() const {
    std::vector<uint64_t> words(image_.size() / sizeof(uint64_t));
    std::memcpy(words.data(), image_.data(), image_.size());
    return words;
  }
  [[nodiscard]] bool PoolsAreEqual() const {
    return std::ranges::equal(pool_->bytes().subspan(kFirst), image_.subspan(kFirst));
  }
  void ExpectEqualAndDurable() {
    EXPECT_TRUE(PoolsAreEqual());
    EXPECT_TRUE(std::ranges::equal(pool_->bytes().first(kFirst), superblocks_)) << "each pool has its superblocks";
    EXPECT_TRUE(crash_pool_->IsDurable(kFirst, image_.size() - kFirst));
  }

  // --- The primary

  // Stores into the primary's pool, and flushes nothing.
  void StoreOnly(uint64_t offset, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, image_.begin() + static_cast<ptrdiff_t>(offset));
  }
  // Flushes a range: the stream gets its bytes. Returns false if the stream has no room.
  bool Flush(uint32_t shard, uint64_t offset, uint64_t size) {
    return shards_[shard].stream->Append(offset, image_.subspan(offset, size), false);
  }
  void Change(uint32_t shard, uint64_t offset, uint64_t size, uint64_t seed) {
    StoreOnly(offset, AsBytes(fabric::Pattern(size, seed)));
    ASSERT_TRUE(Flush(shard, offset, size));
  }
  struct Range {
    uint32_t shard;
    uint64_t offset;
    uint64_t size;
  };
  // A shard stores some bytes of a block, and flushes them now or later. Half of these blocks are in the next piece.
  void ChangeSomething(Random& random) {
    const uint64_t blocks = (image_.size() - kFirst) / kBlockBytes;
    const uint64_t near = copy_->bytes_done() / kBlockBytes + random.Uniform(kPieceBytes / kBlockBytes);
    const uint64_t block = random.Chance(0.5) && near < blocks ? near : random.Uniform(blocks);
    const auto shard = static_cast<uint32_t>(block % kShards);
    const uint64_t from = random.Uniform(kBlockBytes);
    const uint64_t offset = kFirst + block * kBlockBytes + from;
    const uint64_t size = 1 + random.Uniform(kBlockBytes - from);
    StoreOnly(offset, AsBytes(fabric::Pattern(size, random.Next())));
    unflushed_.push_back({shard, offset, size});
    if (random.Chance(0.7)) FlushAll();
  }
  // Flushes as much as the streams have room for.
  void FlushAll() {
    std::erase_if(unflushed_, [this](const Range& range) { return Flush(range.shard, range.offset, range.size); });
  }
  void StepPrimary() {
    for (const Event& event : std::exchange(server_.events, {})) {
      if (event.kind != OpKind::kReceiveImm) continue;
      for (Shard& shard : shards_) {
        if (event.channel == shard.primary.get()) {
          ASSERT_TRUE(Ok(shard.feed->Take(event.imm)));
        }
      }
    }
    for (Shard& shard : shards_) {
      ASSERT_TRUE(Ok(shard.feed->Send()));
      shard.stream->Release(shard.feed->stored());
    }
  }

  // --- The mirror

  // Connects each shard. The followers go on where they were, or begin at the end of the stream.
  void Link() { ASSERT_NO_FATAL_FAILURE(Link({pool_region_.get()})); }
  void Link(const std::vector<fabric::Region*>& of_primary) {
    std::array<std::optional<Place>, kShards> stored;
    for (uint32_t i = 0; i < kShards; ++i) {
      if (shards_[i].follower) stored[i] = shards_[i].follower->stored();
    }
    Unlink();
    for (uint32_t i = 0; i < kShards; ++i) {
      Shard& shard = shards_[i];
      auto ring = SharedMemory::Create("erda-ring", format::kMirrorRingBytesMin);
      ASSERT_TRUE(ring.ok()) << ring.status().ToString();
      shard.ring = *std::move(ring);
      auto region = client_.fabric->Register(shard.ring.view(), fabric::Access::kRemoteReadWrite);
      ASSERT_TRUE(region.ok()) << region.status().ToString();
      shard.ring_region = *std::move(region);
      fabric::Region* const of_mirror[] = {shard.ring_region.get()};
      fabric::ChannelOptions mirror = Offer(client_, of_mirror);
      mirror.message_depth = format::kMirrorMessageDepth;
      fabric::ChannelPair pair = Connect(mirror, Offer(server_, of_primary));
      ASSERT_TRUE(pair.client && pair.server);
      shard.mirror = std::move(pair.client);
      shard.primary = std::move(pair.server);
      const format::MirrorHello hello = Feed::Hello(*shard.stream);
      shard.feed.emplace(*shard.stream, *shard.primary, hello);
      shard.follower.emplace(shard.ring.bytes(), *writer_);
      ASSERT_TRUE(Ok(shard.follower->Start(*shard.mirror, hello, stored[i].value_or(hello.end))));
    }
  }
  void Unlink() {
    if (copy_) copy_->End();
    for (Shard& shard : shards_) {
      shard.feed.reset();
      shard.follower.reset();
      shard.mirror.reset();
      shard.primary.reset();
      shard.ring_region.reset();
    }
    // A new channel may get the address of an old one.
    client_.events.clear();
    server_.events.clear();
  }
  void MakeCopy(uint64_t buffer_bytes = kPieceBytes, uint64_t bytes_per_second = 0) {
    copy_.emplace(client_.bytes(0, buffer_bytes), *writer_, clock_, bytes_per_second);
  }
  // Links, and begins a copy over the channel of one shard.
  void BeginCopy(uint64_t buffer_bytes = kPieceBytes, uint64_t bytes_per_second = 0, uint32_t shard = 0) {
    ASSERT_NO_FATAL_FAILURE(Link());
    MakeCopy(buffer_bytes, bytes_per_second);
    ASSERT_TRUE(Ok(copy_->Begin(*shards_[shard].mirror)));
  }
  // Takes all that has come. Returns the first error.
  Status TakeAtMirror() {
    for (const Event& event : std::exchange(client_.events, {})) {
      if (event.kind == OpKind::kRead) {
        ++reads_;
        if (auto status = copy_->Take(CompletionOf(event)); !status.ok()) return status;
        EXPECT_TRUE(crash_pool_->IsDurable(kFirst, copy_->bytes_done()));
      }
      for (Shard& shard : shards_) {
        if (event.kind != OpKind::kReceiveImm || event.channel != shard.mirror.get()) continue;
        if (auto status = shard.follower->Take(event.imm); !status.ok()) return status;
      }
    }
    return {};
  }
  static fabric::Completion CompletionOf(const Event& event) {
    fabric::Completion completion;
    completion.channel = event.channel;
    completion.kind = event.kind;
    completion.code = event.code;
    completion.bytes = event.bytes;
    return completion;
  }
  void StoreEntries() {
    for (Shard& shard : shards_) {
      while (shard.follower->has_piece()) ASSERT_TRUE(Ok(shard.follower->Store()));
      ASSERT_TRUE(Ok(shard.follower->Answer(*shard.mirror)));
    }
  }
  void StepMirror() {
    ASSERT_TRUE(Ok(TakeAtMirror()));
    if (!copy_->may_store_entries()) return;
    ASSERT_NO_FATAL_FAILURE(StoreEntries());
    ASSERT_TRUE(Ok(copy_->Step()));
  }
  void Step() {
    Pump();
    ASSERT_NO_FATAL_FAILURE(StepPrimary());
    ASSERT_NO_FATAL_FAILURE(StepMirror());
  }
  // Steps until the copy is done, and the primary knows that the mirror has all of the streams.
  void Finish() {
    const auto follows = [](const Shard& shard) { return shard.feed->stored() == shard.stream->end(); };
    for (size_t step = 0; !copy_->is_done() || !unflushed_.empty() || !std::ranges::all_of(shards_, follows); ++step) {
      ASSERT_LT(step, world_->patience());
      FlushAll();
      ASSERT_NO_FATAL_FAILURE(Step());
    }
  }
  // The mirror reads the next piece, and has not taken it.
  void ReadPiece() {
    ASSERT_TRUE(Ok(copy_->Step()));
    ASSERT_TRUE(copy_->is_reading());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  }
  // A Read's completion waits for the copy. Lets an entry come meanwhile.
  void LetAnEntryCome(uint32_t shard) {
    const Event read = *std::ranges::find(client_.events, OpKind::kRead, &Event::kind);
    std::erase_if(client_.events, [](const Event& event) { return event.kind == OpKind::kRead; });
    for (size_t step = 0; !shards_[shard].follower->has_piece(); ++step) {
      ASSERT_LT(step, world_->patience());
      Pump();
      ASSERT_NO_FATAL_FAILURE(StepPrimary());
      ASSERT_TRUE(Ok(TakeAtMirror()));
    }
    client_.events.push_back(read);
  }

  HandClock clock_;
  SharedMemory image_memory_;
  std::span<std::byte> image_;  // The primary's pool.
  std::unique_ptr<fabric::Region> pool_region_;
  std::vector<Range> unflushed_;
  std::unique_ptr<nvm::Pool> pool_;  // The mirror's.
  server::CrashPool* crash_pool_ = nullptr;
  std::vector<std::byte> superblocks_;
  std::optional<nvm::Writer> writer_;
  std::array<Shard, kShards> shards_;
  std::optional<Copy> copy_;
  size_t reads_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, CopyTest, testing::ValuesIn(fabric::AllWorlds()), fabric::KindName);

// --- What the mirror gets

TEST_P(CopyTest, APoolAtRestIsCopiedWithoutItsSuperblocks) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  EXPECT_EQ(copy_->bytes_in_all(), kPoolBytes - kFirst);
  EXPECT_EQ(copy_->bytes_done(), 0U);
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(copy_->bytes_done(), copy_->bytes_in_all());
  EXPECT_EQ(reads_, (kPoolBytes - kFirst) / kPieceBytes + 1) << "the last piece is shorter";
  ExpectEqualAndDurable();
}

TEST_P(CopyTest, APoolThatChangesMeanwhileIsCopied) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    ASSERT_NO_FATAL_FAILURE(BeginCopy(kPieceBytes, 0, static_cast<uint32_t>(seed % kShards)));
    while (!copy_->is_done()) {
      for (uint64_t changes = random.Uniform(4); changes > 0; --changes) ChangeSomething(random);
      Pump();
      // Each end is sometimes late.
      if (random.Chance(0.7)) {
        ASSERT_NO_FATAL_FAILURE(StepPrimary());
      }
      if (random.Chance(0.7)) {
        ASSERT_NO_FATAL_FAILURE(StepMirror());
      }
    }
    ASSERT_NO_FATAL_FAILURE(Finish());
    ExpectEqualAndDurable();
  }
}

// The pool's owner may have chosen any number of bytes.
TEST_P(CopyTest, APoolMayEndInsideOfAWord) {
  constexpr uint64_t kBytes = kFirst + kPieceBytes + 67;
  ASSERT_NO_FATAL_FAILURE(MakePools(AlignUp(kBytes, sizeof(uint64_t))));
  image_ = image_.first(kBytes);
  MemoryView view = image_memory_.view();
  view.bytes = image_;
  auto region = server_.fabric->Register(view, fabric::Access::kRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status().ToString();
  pool_region_ = *std::move(region);
  pool_->Narrow(kBytes);
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  ASSERT_NO_FATAL_FAILURE(Finish());
  ExpectEqualAndDurable();
}

// --- Entries that come meanwhile

TEST_P(CopyTest, EntriesOfEveryShardWaitForThePiece) {
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    ASSERT_NO_FATAL_FAILURE(BeginCopy());
    EXPECT_TRUE(copy_->may_store_entries());
    ASSERT_NO_FATAL_FAILURE(ReadPiece());
    Change(shard, kFirst + 100, 50, 3);
    ASSERT_NO_FATAL_FAILURE(LetAnEntryCome(shard));
    EXPECT_FALSE(copy_->may_store_entries());
    EXPECT_EQ(copy_->bytes_done(), 0U);
    ASSERT_TRUE(Ok(TakeAtMirror()));
    EXPECT_TRUE(copy_->may_store_entries());
    EXPECT_EQ(copy_->bytes_done(), kPieceBytes);
    ASSERT_NO_FATAL_FAILURE(Finish());
    ExpectEqualAndDurable();
  }
}

// "stores-stale-piece" of the model. It shows what the rule is for, and that the tests would notice.
TEST_P(CopyTest, AnEntryThatDoesNotWaitIsLost) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  ASSERT_NO_FATAL_FAILURE(ReadPiece());
  Change(1, kFirst + 100, 50, 3);
  ASSERT_NO_FATAL_FAILURE(LetAnEntryCome(1));
  ASSERT_FALSE(copy_->may_store_entries());
  ASSERT_NO_FATAL_FAILURE(StoreEntries());
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_FALSE(std::ranges::equal(pool_->bytes().subspan(kFirst + 100, 50), image_.subspan(kFirst + 100, 50)));
}

TEST_P(CopyTest, EntriesAreStoredBetweenTwoPieces) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  Random random(4);
  Place stored = 0;
  uint64_t pieces = 0;
  for (uint64_t done = 0; !copy_->is_done();) {
    ASSERT_NO_FATAL_FAILURE(ReadPiece());
    Change(0, kFirst, 8, random.Next());
    ASSERT_NO_FATAL_FAILURE(LetAnEntryCome(0));
    ASSERT_NO_FATAL_FAILURE(StepMirror());
    EXPECT_GT(shards_[0].follower->stored(), std::exchange(stored, shards_[0].follower->stored()));
    EXPECT_GT(copy_->bytes_done(), std::exchange(done, copy_->bytes_done()));
    ++pieces;
    if (copy_->is_done()) break;
    ASSERT_TRUE(copy_->is_reading()) << "StepMirror reads the next piece";
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
    ASSERT_NO_FATAL_FAILURE(StepPrimary());
    ASSERT_TRUE(Ok(TakeAtMirror()));
  }
  EXPECT_GT(pieces, 3U);
}

// --- Pieces

TEST_P(CopyTest, NoWordLiesInTwoPieces) {
  constexpr uint64_t kBuffer = 1004;
  ASSERT_NO_FATAL_FAILURE(BeginCopy(kBuffer));
  constexpr uint64_t kWord = kFirst + AlignDown(kBuffer, sizeof(uint64_t));
  const uint64_t old_word = 0x1111111111111111;
  const uint64_t new_word = 0x2222222222222222;
  StoreOnly(kWord, BytesOf(old_word));
  ASSERT_NO_FATAL_FAILURE(ReadPiece());
  ASSERT_TRUE(Ok(TakeAtMirror()));
  EXPECT_EQ(copy_->bytes_done(), AlignDown(kBuffer, kCacheLine));
  // Nothing brings these bytes to the mirror but the copy.
  StoreOnly(kWord, BytesOf(new_word));
  ASSERT_NO_FATAL_FAILURE(ReadPiece());
  ASSERT_TRUE(Ok(TakeAtMirror()));
  EXPECT_EQ(writer_->Load64(kWord), new_word);
}

TEST_P(CopyTest, OnePieceIsReadAtATime) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  for (int steps = 0; steps < 3; ++steps) ASSERT_TRUE(Ok(copy_->Step()));
  Settle();
  EXPECT_EQ(client_.Count(OpKind::kRead), 1U);
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(reads_, (kPoolBytes - kFirst) / kPieceBytes + 1);
  for (int steps = 0; steps < 3; ++steps) ASSERT_TRUE(Ok(copy_->Step()));
  EXPECT_FALSE(copy_->is_reading()) << "the copy is done";
}

TEST_P(CopyTest, ALargeBufferDoesNotMakeEntriesWaitForLonger) {
  ASSERT_NO_FATAL_FAILURE(MakePools(kFirst + Copy::kPieceBytesMax + 4096));
  ASSERT_NO_FATAL_FAILURE(BeginCopy(2 * Copy::kPieceBytesMax));
  ASSERT_NO_FATAL_FAILURE(ReadPiece());
  ASSERT_TRUE(Ok(TakeAtMirror()));
  EXPECT_EQ(copy_->bytes_done(), Copy::kPieceBytesMax);
  ASSERT_NO_FATAL_FAILURE(Finish());
  ExpectEqualAndDurable();
}

TEST_P(CopyTest, OnlyLinesThatDifferAreStored) {
  std::vector<uint64_t> words = ImageWords();
  words[(kFirst + 3 * kPieceBytes) / sizeof(uint64_t)] ^= 1;
  words.back() ^= 1;
  UseCrashPool({words, words});
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(writer_->counters().bytes, kCacheLine + kPoolBytes % kCacheLine);
  ExpectEqualAndDurable();
}

// The process before this one has stored them, and died before its flush.
TEST_P(CopyTest, EqualBytesThatAreInTheCachesAloneAreFlushed) {
  const std::vector<uint64_t> words = ImageWords();
  UseCrashPool({words, std::vector<uint64_t>(words.size())});
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(writer_->counters().bytes, 0U);
  ExpectEqualAndDurable();
}

// --- The rate

TEST_P(CopyTest, ItReadsNoMoreThanItsRate) {
  constexpr uint64_t kRate = 10 * kPieceBytes + 3;  // Bytes per second. The time of a piece is no whole nanosecond.
  ASSERT_NO_FATAL_FAILURE(BeginCopy(kPieceBytes, kRate));
  const Nanoseconds begin = clock_.now;
  uint64_t posted = 0;
  while (!copy_->is_done()) {
    ASSERT_TRUE(Ok(copy_->Step()));
    ASSERT_TRUE(copy_->is_reading()) << "it is due";
    ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
    ASSERT_TRUE(Ok(TakeAtMirror()));
    posted = copy_->bytes_done();
    ASSERT_TRUE(Ok(copy_->Step()));
    EXPECT_FALSE(copy_->is_reading()) << "nothing is due, and it holds up no entry";
    EXPECT_TRUE(copy_->may_store_entries());
    clock_.now = copy_->due_at() - Nanoseconds(1);
    ASSERT_TRUE(Ok(copy_->Step()));
    EXPECT_FALSE(copy_->is_reading());
    clock_.now = copy_->due_at();
    // Since the beginning it read what the rate allows, but for less than a nanosecond a piece.
    const auto passed = static_cast<double>((clock_.now - begin).count()) * 1e-9;
    EXPECT_LE(static_cast<double>(posted), passed * kRate + 1e-3);
    EXPECT_GE(static_cast<double>(posted), passed * kRate - 1);
  }
  EXPECT_EQ(posted, kPoolBytes - kFirst);
}

TEST_P(CopyTest, ItDoesNotMakeUpForTimeWithoutReads) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy(kPieceBytes, kPieceBytes));
  clock_.now += std::chrono::hours(1);
  for (int piece = 0; piece < 3; ++piece) {
    ASSERT_NO_FATAL_FAILURE(ReadPiece());
    ASSERT_TRUE(Ok(TakeAtMirror()));
    ASSERT_TRUE(Ok(copy_->Step()));
    EXPECT_FALSE(copy_->is_reading());
    EXPECT_EQ(copy_->due_at(), clock_.now + std::chrono::seconds(1));
    clock_.now += std::chrono::hours(1);
  }
}

// --- A lost link

// The caller tells it what the channel reports.
TEST_P(CopyTest, AfterALostLinkItGoesOnWithThePiece) {
  Random random(6);
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  for (int links = 0; links < 3; ++links) {
    const uint64_t before = copy_->bytes_done();
    while (copy_->bytes_done() < before + 4 * kPieceBytes) {
      ChangeSomething(random);
      ASSERT_NO_FATAL_FAILURE(Step());
    }
    const uint64_t done = copy_->bytes_done();
    for (Shard& shard : shards_) shard.primary.reset();
    server_.events.clear();
    Status lost;
    for (size_t step = 0; lost.ok(); ++step) {
      ASSERT_LT(step, world_->patience());
      Pump();
      lost = TakeAtMirror();
      if (lost.ok()) lost = copy_->Step();
    }
    EXPECT_TRUE(copy_->may_store_entries()) << "the mirror stores what its ring has";
    for (Shard& shard : shards_) {
      while (shard.follower->has_piece()) ASSERT_TRUE(Ok(shard.follower->Store()));
    }
    EXPECT_TRUE(Ok(copy_->Step())) << "nothing happens without a link";
    EXPECT_FALSE(copy_->is_reading());
    for (int changes = 0; changes < 20; ++changes) ChangeSomething(random);
    const uint64_t kept = copy_->bytes_done();
    EXPECT_GE(kept, done);
    EXPECT_LE(kept, done + 2 * kPieceBytes);
    ASSERT_NO_FATAL_FAILURE(Link());
    ASSERT_TRUE(Ok(copy_->Begin(*shards_[1].mirror)));
    EXPECT_EQ(copy_->bytes_done(), kept);
  }
  ASSERT_NO_FATAL_FAILURE(Finish());
  ExpectEqualAndDurable();
}

TEST_P(CopyTest, AFailedReadStoresNothing) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  const std::vector<std::byte> before(pool_->bytes().begin(), pool_->bytes().end());
  ASSERT_NO_FATAL_FAILURE(ReadPiece());
  Event read = *std::ranges::find(client_.events, OpKind::kRead, &Event::kind);
  read.code = Code::kUnavailable;
  const Status status = copy_->Take(CompletionOf(read));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("16384 bytes at offset 8192"), std::string_view::npos) << status.ToString();
  EXPECT_TRUE(std::ranges::equal(pool_->bytes(), before));
  EXPECT_EQ(copy_->bytes_done(), 0U);
  EXPECT_TRUE(copy_->may_store_entries());
  EXPECT_TRUE(Ok(copy_->Step()));
  EXPECT_FALSE(copy_->is_reading());
}

// The channel of another shard failed, and the caller destroys all of them.
TEST_P(CopyTest, APieceOfAnEndedLinkDoesNotCount) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  ASSERT_NO_FATAL_FAILURE(ReadPiece());
  copy_->End();
  EXPECT_TRUE(copy_->may_store_entries());
  EXPECT_EQ(copy_->bytes_done(), 0U);
  Change(1, kFirst, 8, 3);
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(Ok(copy_->Begin(*shards_[0].mirror)));
  ASSERT_NO_FATAL_FAILURE(Finish());
  ExpectEqualAndDurable();
}

// A channel to a primary with a pool of some size, over which nothing can be posted.
class DeadChannel final : public fabric::Channel {
 public:
  explicit DeadChannel(uint64_t pool_bytes) : region_{pool_bytes, fabric::Access::kRemoteRead} {}

  Status Post(std::span<const fabric::WorkRequest> /*batch*/) override {
    ++posts;
    return {Code::kUnavailable, "the channel has failed"};
  }
  bool Fence() override { return true; }
  [[nodiscard]] bool connected() const override { return true; }
  [[nodiscard]] std::span<const fabric::RemoteRegion> peer_regions() const override { return {&region_, 1}; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return {}; }
  [[nodiscard]] const Status& error() const override { return error_; }

  int posts = 0;

 private:
  const fabric::RemoteRegion region_;
  const Status error_;
};

TEST_P(CopyTest, AReadThatCannotBePostedEndsTheLink) {
  MakeCopy();
  DeadChannel dead(kPoolBytes);
  ASSERT_TRUE(Ok(copy_->Begin(dead)));
  EXPECT_EQ(copy_->Step().code(), Code::kUnavailable);
  EXPECT_TRUE(copy_->may_store_entries());
  EXPECT_TRUE(Ok(copy_->Step()));
  EXPECT_EQ(dead.posts, 1);
  copy_.reset();
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  ASSERT_NO_FATAL_FAILURE(Finish());
  ExpectEqualAndDurable();
}

// --- A primary with another pool

TEST_P(CopyTest, ARefusedLinkIsNoLink) {
  MakeCopy();
  DeadChannel former(kPoolBytes);
  ASSERT_TRUE(Ok(copy_->Begin(former)));
  DeadChannel refused(kPoolBytes + 8);
  EXPECT_EQ(copy_->Begin(refused).code(), Code::kInvalidArgument);
  EXPECT_TRUE(Ok(copy_->Step()));
  EXPECT_EQ(former.posts + refused.posts, 0);
}

TEST_P(CopyTest, APoolOfAnotherSizeIsRefused) {
  for (const uint64_t bytes : {kPoolBytes - 8, kPoolBytes + 8, uint64_t{4096}}) {
    auto memory = SharedMemory::Create("erda-other", AlignUp(bytes, 4096));
    ASSERT_TRUE(memory.ok()) << memory.status().ToString();
    MemoryView view = memory->view();
    view.bytes = view.bytes.first(bytes);
    auto region = server_.fabric->Register(view, fabric::Access::kRemoteRead);
    ASSERT_TRUE(region.ok()) << region.status().ToString();
    ASSERT_NO_FATAL_FAILURE(Link({region->get()}));
    MakeCopy();
    EXPECT_EQ(copy_->Begin(*shards_[0].mirror).code(), Code::kInvalidArgument);
    EXPECT_TRUE(Ok(copy_->Step()));
    EXPECT_FALSE(copy_->is_reading());
    Unlink();
  }
}

TEST_P(CopyTest, APrimaryThatOffersNoPoolIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Link({}));
  MakeCopy();
  const Status status = copy_->Begin(*shards_[0].mirror);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("the size of the mirror's pool"), std::string_view::npos) << status.ToString();
}

}  // namespace
}  // namespace erda::mirror
