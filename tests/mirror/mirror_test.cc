// A mirror with a primary of two shards: the copy, joining, the mark in the superblock, lost links and new starts.
#include "mirror/mirror.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/random.h"
#include "fabric/fixture.h"
#include "format/hello.h"
#include "mirror/primary_pool.h"
#include "server/crash_pool.h"

namespace erda::mirror {
namespace {

using fabric::OpKind;

constexpr uint64_t kMirrorPoolBytes = (1 << 20) + 4096;
constexpr uint32_t kShardsOfPrimary = 2;
constexpr uint64_t kFirstByte = format::kShardRecordsOffset;
constexpr uint64_t kBytesOfShard = (kMirrorPoolBytes - kFirstByte) / kShardsOfPrimary;
constexpr Nanoseconds kLookTime = std::chrono::seconds(1);

// The primary's pool, whose bytes outlive it.
class SharedPool final : public nvm::Pool {
 public:
  explicit SharedPool(const SharedMemory& memory) : memory_(memory) {
    bytes_ = memory.bytes().first(kMirrorPoolBytes);
    durability_ = nvm::Durability::kPowerSafe;
  }
  [[nodiscard]] MemoryView view() const override { return memory_.view(); }
  [[nodiscard]] bool created() const override { return false; }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override { return {Code::kInvalidArgument, "a test"}; }

 private:
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  const SharedMemory& memory_;
};

format::Superblock MirrorSuperblock() {
  format::Superblock superblock{};
  superblock.uuid = {1, 2, 3};
  superblock.geometry.pool_size = kMirrorPoolBytes;
  superblock.geometry.shards = kShardsOfPrimary;
  superblock.hash_seed[0] = 77;
  return superblock;
}

class MirrorTest : public fabric::FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    if (HasFatalFailure()) return;
    image_ = *SharedMemory::Create("erda-image", kMirrorPoolBytes);
    fabric::Put(image_.bytes().first(kMirrorPoolBytes), fabric::Pattern(kMirrorPoolBytes, 1));
    Primary();
  }
  void TearDown() override {
    mirror_.reset();
    StopPrimary();
  }

  // --- The primary

  // A server of the primary starts on the pool, with new streams.
  void Primary(LinksOptions links = {}) {
    StopPrimary();
    links.clock = &clock_;
    links.epoch = 3;
    const auto keep = [](uint64_t /*id*/) { return Status(); };
    primary_ = *PrimaryPool::Make(std::make_unique<SharedPool>(image_), {}, kShardsOfPrimary,
                                  {.stream_bytes = journal::Stream::kCapacityMin,
                                   .links = links,
                                   .named = 0,
                                   .keep = links.goes_alone ? Membership::Keep() : keep});
    MemoryView view = image_.view();
    view.bytes = view.bytes.first(kMirrorPoolBytes);
    readable_ = *server_.fabric->Register(view, fabric::Access::kRemoteRead);
    for (uint32_t shard = 0; shard < kShardsOfPrimary; ++shard) {
      ASSERT_TRUE(Ok(primary_->links(shard).Serve(std::span(&server_.fabric, 1))));
      writers_[shard].emplace(primary_->OfShard(shard));
    }
  }
  void StopPrimary() {
    if (!primary_) return;
    for (uint32_t shard = 0; shard < kShardsOfPrimary; ++shard) primary_->links(shard).Close();
    for (auto& writer : writers_) writer.reset();
    primary_.reset();
    readable_.reset();
  }
  void Change(uint32_t shard, uint64_t at, uint64_t size, uint64_t seed) {
    const std::string bytes = fabric::Pattern(size, seed);
    writers_[shard]->Write(kFirstByte + shard * kBytesOfShard + at, AsBytes(bytes));
    writers_[shard]->Persist(kFirstByte + shard * kBytesOfShard + at, size);
  }
  void ChangeSomething() {
    const uint64_t size = 1 + random_.Uniform(300);
    Change(static_cast<uint32_t>(random_.Uniform(kShardsOfPrimary)), random_.Uniform(kBytesOfShard - size), size,
           random_.Next());
  }
  void Admit(std::unique_ptr<fabric::Incoming> incoming) {
    const auto request = LoadAs<format::HelloRequest>(incoming->peer_data());
    EXPECT_EQ(request.role, format::Role::kMirror);
    if (!admits_) return;
    format::HelloReply reply{};
    reply.magic = format::kHelloMagic;
    reply.protocol_version = format::kProtocolVersion;
    reply.pool_uuid = of_primary_.uuid;
    reply.geometry = of_primary_.geometry;
    reply.hash_seed = of_primary_.hash_seed;
    fabric::Region* const offer[] = {readable_.get()};
    ++admitted_;
    EXPECT_TRUE(Ok(primary_->links(request.shard).Admit(*incoming, request, 0, offer, reply, 0)));
  }
  void StepPrimary() {
    if (auto incoming = listener_->Poll()) Admit(std::move(incoming));
    for (uint32_t shard = 0; shard < kShardsOfPrimary; ++shard) {
      if (silent_shard_ == shard) continue;
      (void)primary_->links(shard).Poll();
      primary_->links(shard).Send();
    }
  }
  [[nodiscard]] bool PrimaryCounts() const { return primary_->links(0).in_sync() && primary_->links(1).in_sync(); }
  [[nodiscard]] bool AllIsHeld() const {
    return std::ranges::all_of(std::array{0U, 1U}, [this](uint32_t shard) {
      return primary_->OfShard(shard).held() == primary_->OfShard(shard).place();
    });
  }

  // --- The mirror

  // Its pool has other bytes than the primary's, or those of the mirror before.
  void Make(Mark mark = {}, bool keeps_bytes = false) {
    mirror_.reset();
    if (!keeps_bytes) {
      std::vector<uint64_t> words(kMirrorPoolBytes / sizeof(uint64_t));
      fabric::Put(std::as_writable_bytes(std::span(words)), fabric::Pattern(kMirrorPoolBytes, 2));
      pool_ = std::make_unique<server::CrashPool>(std::move(words));
    }
    MirrorOptions options;
    options.address = listener_->address();
    options.id = 9;
    options.ring_bytes = format::kMirrorRingBytesMin;
    options.clock = &clock_;
    options.copy_bytes_per_second = rate_;
    options.tell = [this](std::string_view line) { told_.emplace_back(line); };
    mirror_ = *Mirror::Make(
        *client_.fabric, *pool_, superblock_, mark, [this](const Mark& next) { return StoreMark(next); },
        std::move(options));
  }
  Status StoreMark(const Mark& mark) {
    if (!marks_well_.ok()) return marks_well_;
    EXPECT_EQ(mark.in_sync, mirror_->state() == Mirror::State::kJoining);
    if (mark.in_sync) {
      EXPECT_FALSE(PrimaryCounts()) << "the primary hears of it after that";
      EXPECT_TRUE(pool_->IsDurable(kFirstByte, kMirrorPoolBytes - kFirstByte));
    } else {
      bytes_at_mark_.assign(pool_->bytes().begin(), pool_->bytes().end());
    }
    marks_.push_back(mark);
    return {};
  }
  [[nodiscard]] bool IsSame() const {
    return std::ranges::equal(pool_->bytes().subspan(kFirstByte),
                              image_.bytes().subspan(kFirstByte, kMirrorPoolBytes - kFirstByte));
  }
  [[nodiscard]] size_t Copies() const { return Told("copies the primary's pool"); }
  [[nodiscard]] size_t Told(const std::string& words) const {
    return static_cast<size_t>(
        std::ranges::count_if(told_, [&](const std::string& line) { return line.find(words) != std::string::npos; }));
  }

  // --- Steps

  void Step() {
    Pump();
    StepPrimary();
    if (mirror_) (void)mirror_->Poll();
    clock_.now += std::chrono::microseconds(10);
  }
  template <class Done>
  testing::AssertionResult Until(Done&& done) {
    for (size_t step = 0; step < world_->patience() / 10; ++step) {
      if (done()) return testing::AssertionSuccess();
      Step();
    }
    return testing::AssertionFailure() << "it never happened: " << mirror_->last_error().ToString();
  }
  testing::AssertionResult UntilInSync() {
    return Until([this] { return mirror_->state() == Mirror::State::kInSync && PrimaryCounts() && AllIsHeld(); });
  }
  void Rest() {
    for (size_t step = 0; step < std::min<size_t>(world_->quiet(), 3000); ++step) Step();
  }
  // The primary's shard loses its link.
  void LoseLink(uint32_t shard) {
    primary_->links(shard).Close();
    ASSERT_TRUE(Ok(primary_->links(shard).Serve(std::span(&server_.fabric, 1))));
    ASSERT_TRUE(Until([this] { return mirror_->state() == Mirror::State::kApart; }));
    clock_.now += kLookTime;
  }

  HandClock clock_;
  Random random_{1};
  SharedMemory image_;
  std::unique_ptr<PrimaryPool> primary_;
  std::unique_ptr<fabric::Region> readable_;
  std::array<std::optional<nvm::Writer>, kShardsOfPrimary> writers_;
  format::Superblock of_primary_ = MirrorSuperblock();
  bool admits_ = true;
  size_t admitted_ = 0;
  std::optional<uint32_t> silent_shard_;  // It does nothing.

  format::Superblock superblock_ = MirrorSuperblock();
  std::unique_ptr<server::CrashPool> pool_;
  std::unique_ptr<Mirror> mirror_;
  uint64_t rate_ = 0;
  Status marks_well_;
  std::vector<Mark> marks_;
  std::vector<std::byte> bytes_at_mark_;  // The pool when the mark was taken back.
  std::vector<std::string> told_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, MirrorTest, testing::ValuesIn(fabric::AllWorlds()), fabric::KindName);

TEST_P(MirrorTest, ANewMirrorCopiesThePoolAndIsInSync) {
  Make();
  ASSERT_TRUE(UntilInSync());
  EXPECT_TRUE(IsSame());
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}, {true, 3}}));
  EXPECT_TRUE(mirror_->may_be_promoted());
  EXPECT_EQ(mirror_->copy()->bytes_done(), kMirrorPoolBytes - kFirstByte);
  EXPECT_EQ(Told("the mirror is in sync"), 1U);
  Change(0, 5, 100, 1);
  Change(1, 6, 100, 2);
  ASSERT_TRUE(Until([this] { return AllIsHeld(); }));
  EXPECT_TRUE(IsSame());
}

TEST_P(MirrorTest, ThePrimaryChangesDuringTheCopy) {
  rate_ = 200 << 20;
  Make();
  for (int i = 0; !PrimaryCounts(); ++i) {
    ASSERT_LT(i, 100'000) << mirror_->last_error().ToString();
    if (i % 3 == 0 && i < 3000) ChangeSomething();
    Step();
  }
  ASSERT_TRUE(Until([this] { return AllIsHeld(); }));
  EXPECT_TRUE(IsSame());
  EXPECT_EQ(Copies(), 1U);
}

// --- The mark

TEST_P(MirrorTest, ThePrimaryHearsNothingBeforeTheMarkIsStored) {
  marks_well_ = Status(Code::kUnavailable, "the disk is full");
  Make();
  Rest();
  EXPECT_FALSE(PrimaryCounts());
  EXPECT_EQ(Told("the disk is full"), 1U) << "the same error again is no news";
  EXPECT_EQ(mirror_->copy(), nullptr) << "no copy begins while the superblock may say that the mirror is in sync";
  marks_well_ = {};
  clock_.now += kLookTime;
  ASSERT_TRUE(
      Until([this] { return mirror_->state() == Mirror::State::kCopying && mirror_->copy()->bytes_done() > 0; }));
  marks_well_ = Status(Code::kUnavailable, "the disk is full");
  Rest();
  EXPECT_FALSE(PrimaryCounts());
  EXPECT_FALSE(mirror_->may_be_promoted());
  marks_well_ = {};
  clock_.now += kLookTime;
  ASSERT_TRUE(UntilInSync());
}

// A write of the superblock that fails may reach the medium all the same.
TEST_P(MirrorTest, AMarkThatMayHaveBeenStoredIsTakenBackBeforeACopy) {
  Make();
  ASSERT_TRUE(Until([this] { return mirror_->state() == Mirror::State::kCopying; }));
  marks_well_ = Status(Code::kUnavailable, "the sync failed");
  ASSERT_TRUE(Until([this] { return mirror_->state() == Mirror::State::kApart; }));
  EXPECT_EQ(Told("the sync failed"), 1U);
  marks_well_ = {};
  marks_.clear();
  ASSERT_NO_FATAL_FAILURE(Primary());
  clock_.now += kLookTime;
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(Copies(), 2U);
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}, {true, 3}}));
}

TEST_P(MirrorTest, AMirrorThatWasInSyncTakesItsMarkBackBeforeACopy) {
  Make();
  ASSERT_TRUE(UntilInSync());
  const std::vector<std::byte> before(pool_->bytes().begin(), pool_->bytes().end());
  marks_.clear();
  // Another process of the mirror does not know where it is in the streams.
  Make({true, 3}, true);
  EXPECT_TRUE(mirror_->may_be_promoted());
  Change(0, 5, 100, 1);
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}, {true, 3}}));
  EXPECT_EQ(bytes_at_mark_, before);
  EXPECT_EQ(Copies(), 2U);
  EXPECT_TRUE(IsSame());
}

TEST_P(MirrorTest, OneShardIsNotEnough) {
  silent_shard_ = 1;
  Make();
  ASSERT_TRUE(Until([this] { return mirror_->state() == Mirror::State::kJoining; }));
  Rest();
  EXPECT_EQ(mirror_->state(), Mirror::State::kJoining);
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}}));
  EXPECT_FALSE(mirror_->may_be_promoted());
  EXPECT_FALSE(primary_->links(0).in_sync());
  silent_shard_.reset();
  ASSERT_TRUE(UntilInSync());
}

TEST_P(MirrorTest, WithAPrimaryThatGoesOnAloneTheSuperblockSaysNothing) {
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true}));
  Make();
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}}));
  EXPECT_TRUE(mirror_->may_be_promoted());
  ASSERT_NO_FATAL_FAILURE(LoseLink(1));
  EXPECT_FALSE(mirror_->may_be_promoted());
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(Copies(), 1U);
}

TEST_P(MirrorTest, AMarkGoesWhenThePrimaryMayGoOnAlone) {
  Make({true, 3});
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true}));
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}}));
}

// --- Lost links

TEST_P(MirrorTest, AfterALostLinkTheMirrorGoesOnWhereItWas) {
  Make();
  ASSERT_TRUE(UntilInSync());
  for (uint32_t shard = 0; shard < kShardsOfPrimary; ++shard) {
    const size_t before = admitted_;
    ASSERT_NO_FATAL_FAILURE(LoseLink(shard));
    EXPECT_TRUE(mirror_->may_be_promoted()) << "the primary answers nothing without it";
    Change(0, 5, 100, shard);
    Change(1, 6, 100, shard);
    EXPECT_FALSE(AllIsHeld());
    ASSERT_TRUE(UntilInSync());
    EXPECT_TRUE(IsSame());
    EXPECT_EQ(admitted_, before + kShardsOfPrimary) << "all links are new";
  }
  EXPECT_EQ(Copies(), 1U);
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}, {true, 3}}));
}

TEST_P(MirrorTest, TheCopyGoesOnOverNewLinks) {
  rate_ = 200 << 20;
  Make();
  for (uint64_t pieces = 1; pieces <= 3; ++pieces) {
    ASSERT_TRUE(Until([&] { return mirror_->copy() && mirror_->copy()->bytes_done() >= pieces * (200 << 10); }));
    ChangeSomething();
    const uint64_t before = mirror_->copy()->bytes_done();
    ASSERT_NO_FATAL_FAILURE(LoseLink(static_cast<uint32_t>(pieces % 2)));
    ASSERT_TRUE(Until([&] { return mirror_->state() >= Mirror::State::kCopying; }));
    EXPECT_GE(mirror_->copy()->bytes_done(), before);
    ChangeSomething();
  }
  ASSERT_TRUE(UntilInSync());
  EXPECT_TRUE(IsSame());
  EXPECT_EQ(Copies(), 1U);
}

TEST_P(MirrorTest, NewStreamsNeedAnotherCopy) {
  Make();
  ASSERT_TRUE(UntilInSync());
  marks_.clear();
  ASSERT_NO_FATAL_FAILURE(Primary());
  clock_.now += kLookTime;
  ASSERT_TRUE(Until([this] { return mirror_->state() != Mirror::State::kInSync; }));
  EXPECT_TRUE(mirror_->may_be_promoted()) << "the primary serves nobody before the mirror is in sync";
  clock_.now += kLookTime;
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(Copies(), 2U);
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}, {true, 3}}));
  EXPECT_TRUE(IsSame());
}

TEST_P(MirrorTest, AStreamThatHasGoneOnNeedsAnotherCopy) {
  Make();
  ASSERT_TRUE(UntilInSync());
  ASSERT_NO_FATAL_FAILURE(LoseLink(0));
  admits_ = false;
  // The stream has no room for what the mirror lacks.
  primary_->links(0).AwaitRoom();
  for (uint64_t i = 0; i < 30; ++i) Change(0, 5000 * i, 5000, i);
  primary_->links(0).AwaitRoom();
  admits_ = true;
  ASSERT_TRUE(UntilInSync());
  EXPECT_TRUE(IsSame());
  EXPECT_EQ(Copies(), 2U);
}

// The mirror reads a word now and then, and an end that has gone answers no Read.
TEST_P(MirrorTest, AMirrorWithoutMessagesLooksWhetherThePrimaryIsThere) {
  Make();
  ASSERT_TRUE(UntilInSync());
  Rest();
  const std::vector<std::string> before = told_;
  for (int times = 0; times < 5; ++times) {
    clock_.now += kLookTime;
    Rest();
  }
  EXPECT_EQ(told_, before);
  EXPECT_EQ(mirror_->looks(), 5 * kShardsOfPrimary);
}

// --- Primaries that the mirror does not take

TEST_P(MirrorTest, APrimaryThatMayLackAnswersGetsNoCopy) {
  ASSERT_NO_FATAL_FAILURE(Primary({.may_lack = true}));
  Make({true, 3});
  const std::vector<std::byte> before(pool_->bytes().begin(), pool_->bytes().end());
  for (int times = 0; times < 3; ++times) {
    Rest();
    clock_.now += kLookTime;
  }
  EXPECT_EQ(Told("promote the mirror"), 1U);
  EXPECT_TRUE(marks_.empty());
  EXPECT_TRUE(mirror_->may_be_promoted());
  EXPECT_TRUE(std::ranges::equal(pool_->bytes(), before));
  // A mirror that cannot be promoted has nothing to lose.
  Make({false, 3});
  EXPECT_TRUE(UntilInSync());
}

TEST_P(MirrorTest, AnotherPoolIsNotCopied) {
  const auto expect_refused = [&](const char* what) {
    marks_.clear();
    told_.clear();
    Make();
    Rest();
    EXPECT_EQ(Told("the primary has another pool"), 1U) << what;
    EXPECT_TRUE(marks_.empty()) << what;
    of_primary_ = MirrorSuperblock();
  };
  of_primary_.uuid[5] = 1;
  expect_refused("identity");
  of_primary_.geometry.pool_size += 4096;
  expect_refused("size");
  of_primary_.hash_seed[1] = 1;
  expect_refused("hash seed");
}

TEST_P(MirrorTest, APrimaryOfAnOlderEpochIsNotFollowed) {
  Make({true, 4});
  Rest();
  EXPECT_EQ(Told("another server was promoted since"), 1U);
  EXPECT_TRUE(marks_.empty());
}

// --- Promotion

TEST_P(MirrorTest, AMirrorThatLeavesAnswersNothingMore) {
  Make();
  ASSERT_TRUE(UntilInSync());
  Change(0, 5, 100, 1);
  primary_->links(0).Send();
  for (int i = 0; i < 100; ++i) Pump();
  EXPECT_TRUE(Ok(mirror_->Leave()));
  EXPECT_EQ(mirror_->state(), Mirror::State::kApart);
  EXPECT_TRUE(mirror_->may_be_promoted());
  for (int times = 0; times < 3; ++times) {
    Rest();
    clock_.now += kLookTime;
  }
  EXPECT_FALSE(AllIsHeld());
  EXPECT_EQ(mirror_->state(), Mirror::State::kApart);
}

}  // namespace
}  // namespace erda::mirror
