// A mirror with a primary of two shards: the copy, joining, the mark in the superblock, lost links and new starts.
#include "mirror/mirror.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "fabric/fixture.h"
#include "format/hello.h"
#include "format/proof.h"
#include "mirror/fixture.h"
#include "mirror/primary_pool.h"
#include "server/crash_pool.h"
#include "server/sessions/gate.h"

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
  [[nodiscard]] format::HelloReply HelloOfPrimary() const {
    format::HelloReply hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.pool_uuid = of_primary_.uuid;
    hello.geometry = of_primary_.geometry;
    hello.hash_seed = of_primary_.hash_seed;
    return hello;
  }
  void Admit(std::unique_ptr<fabric::Incoming> incoming) {
    const auto request = LoadAs<format::HelloRequest>(incoming->peer_data());
    EXPECT_EQ(request.role, format::Role::kMirror);
    if (!admits_) return;
    format::HelloReply reply = HelloOfPrimary();
    fabric::Region* const offer[] = {readable_.get()};
    ++admitted_;
    if (gate_) {
      const auto guest = server::Greet(*incoming, gate_.get(), kShardsOfPrimary, {}, true);
      if (!guest) return;
      reply.proof = format::ServerProof(guest->admission.secret, guest->admission.nonce, reply);
    }
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
    options.token = token_;
    options.tell = [this](std::string_view line) { told_.emplace_back(line); };
    mirror_ = *Mirror::Make(
        *client_.fabric, *pool_, superblock_, mark, [this](const Mark& next) { return StoreMark(next); },
        std::move(options));
  }
  Status StoreMark(const Mark& mark) {
    if (!marks_well_.ok()) return marks_well_;
    EXPECT_EQ(mark.in_sync, mirror_->state() == Mirror::State::kJoining);
    if (mark.in_sync) {
      for (int i = 0; i < 50; ++i) {
        Pump();
        StepPrimary();
      }
      EXPECT_FALSE(primary_->links(0).in_sync() || primary_->links(1).in_sync())
          << "the primary hears of it after that";
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
    if (primary_steps_) StepPrimary();
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
  bool primary_steps_ = true;
  size_t admitted_ = 0;
  std::unique_ptr<server::Gate> gate_;    // Null: the primary demands no token.
  std::optional<uint32_t> silent_shard_;  // It does nothing.

  format::Superblock superblock_ = MirrorSuperblock();
  std::unique_ptr<server::CrashPool> pool_;
  std::unique_ptr<Mirror> mirror_;
  uint64_t rate_ = 0;
  std::string token_;
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

TEST_P(MirrorTest, ThePrimaryChangesThePieceThatIsBeingRead) {
  Make();
  for (int i = 0; !PrimaryCounts(); ++i) {
    ASSERT_LT(i, 100'000) << mirror_->last_error().ToString();
    if (mirror_->state() == Mirror::State::kCopying) {
      const uint64_t done = mirror_->copy()->bytes_done();
      const uint64_t at = std::min(done + random_.Uniform(Copy::kPieceBytesMax), 2 * kBytesOfShard - 300);
      const auto shard = static_cast<uint32_t>(at / kBytesOfShard);
      Change(shard, at - shard * kBytesOfShard, 8 + random_.Uniform(200), random_.Next());
    }
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

TEST_P(MirrorTest, AMirrorThatDoesNotKnowItsMarkMayNotBePromoted) {
  Make();
  ASSERT_TRUE(UntilInSync());
  marks_well_ = Status(Code::kUnavailable, "the sync failed");
  ASSERT_NO_FATAL_FAILURE(Primary());
  clock_.now += kLookTime;
  ASSERT_TRUE(Until([this] { return Told("the sync failed") == 1; }));
  EXPECT_FALSE(mirror_->may_be_promoted());
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

// The process before it may have died before the mark was on the medium.
TEST_P(MirrorTest, AProcessWritesItsMarkBeforeACopyThoughThePoolHasIt) {
  Make({false, 3});
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}, {true, 3}}));
}

TEST_P(MirrorTest, OneShardIsNotEnough) {
  rate_ = 200 << 20;
  Make();
  ASSERT_TRUE(Until([this] { return mirror_->state() == Mirror::State::kCopying; }));
  silent_shard_ = 1;
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
  const uint64_t looks = mirror_->looks();
  for (int times = 0; times < 5; ++times) {
    clock_.now += kLookTime;
    Rest();
  }
  EXPECT_EQ(told_, before);
  EXPECT_EQ(mirror_->looks() - looks, 5 * kShardsOfPrimary);
}

TEST_P(MirrorTest, AMirrorThatHearsNothingMayNotBePromotedOnceThePrimaryMayBeAlone) {
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true, .timeout = std::chrono::milliseconds(200)}));
  Make();
  ASSERT_TRUE(UntilInSync());
  Rest();
  // A Read that was posted now would tell that the primary is there.
  const Nanoseconds before = clock_.now;
  while (clock_.now < before + std::chrono::seconds(2)) {
    clock_.now += std::chrono::milliseconds(40);
    Rest();
    ASSERT_TRUE(mirror_->may_be_promoted());
  }
  clock_.now += std::chrono::milliseconds(200);
  EXPECT_FALSE(mirror_->may_be_promoted()) << "nobody has polled the mirror";
  (void)mirror_->Poll();
  EXPECT_EQ(mirror_->state(), Mirror::State::kApart);
  EXPECT_EQ(Told("the primary does not answer"), 1U);
  clock_.now += kLookTime;
  ASSERT_TRUE(UntilInSync());
  EXPECT_TRUE(mirror_->may_be_promoted());
}

TEST_P(MirrorTest, AMirrorThatConnectsSlowlyGetsIn) {
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true, .timeout = std::chrono::milliseconds(200)}));
  Make();
  ASSERT_TRUE(Until([this] { return mirror_->state() == Mirror::State::kConnecting; }));
  clock_.now += std::chrono::milliseconds(900);
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(Told("the primary does not answer"), 0U);
}

// The primary may lose the link just after it has answered the Read, and the mirror may hear of the Read late.
TEST_P(MirrorTest, ThePrimaryIsThereWhenAReadIsPostedAndNotLonger) {
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true, .timeout = std::chrono::milliseconds(800)}));
  Make();
  ASSERT_TRUE(UntilInSync());
  Rest();
  const uint64_t looks = mirror_->looks();
  while (mirror_->looks() == looks) {
    clock_.now += std::chrono::milliseconds(50);
    (void)mirror_->Poll();
  }
  for (size_t i = 0; i < std::min<size_t>(world_->quiet(), 3000); ++i) Pump();
  clock_.now += std::chrono::milliseconds(400);
  (void)mirror_->Poll();
  EXPECT_TRUE(mirror_->may_be_promoted());
  clock_.now += std::chrono::milliseconds(400);
  EXPECT_FALSE(mirror_->may_be_promoted());
}

TEST_P(MirrorTest, AMirrorThatHearsNothingForLongComesAgain) {
  Make();
  ASSERT_TRUE(UntilInSync());
  Rest();
  clock_.now += std::chrono::seconds(5);
  EXPECT_TRUE(mirror_->may_be_promoted());
  (void)mirror_->Poll();
  EXPECT_EQ(mirror_->state(), Mirror::State::kApart);
  EXPECT_TRUE(mirror_->may_be_promoted()) << "the primary answers nothing without it";
  clock_.now += kLookTime;
  ASSERT_TRUE(UntilInSync());
  EXPECT_EQ(Copies(), 1U);
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

// Its superblock says nothing, since that primary goes on alone.
TEST_P(MirrorTest, AProcessThatWasInSyncKeepsWhatThePrimaryMayLack) {
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true}));
  Make();
  ASSERT_TRUE(UntilInSync());
  ASSERT_NO_FATAL_FAILURE(Primary({.goes_alone = true, .may_lack = true}));
  for (int times = 0; times < 5; ++times) {
    Rest();
    clock_.now += kLookTime;
  }
  EXPECT_EQ(Told("promote the mirror"), 1U);
  EXPECT_EQ(Copies(), 1U);
  Make({false, 3}, true);
  EXPECT_TRUE(UntilInSync()) << "the operator has started it again";
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

TEST_P(MirrorTest, AMirrorProvesThatItKnowsItsToken) {
  const TemporaryFolder folder;
  const std::string path = folder / "tokens";
  std::ofstream(path) << "the-token-of-a-mirror mirror\nthe-token-of-a-writer\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  gate_ = *server::Gate::Open(path, clock_);
  token_ = "the-token-of-a-mirror";
  Make();
  ASSERT_TRUE(UntilInSync());
  const auto expect_refused = [&](const std::string& token, const std::string& words) {
    told_.clear();
    token_ = token;
    Make();
    Rest();
    EXPECT_EQ(Told(words), 1U) << mirror_->last_error().ToString();
  };
  expect_refused("the-token-of-a-writer", "this token makes no mirror");
  expect_refused("no-such-token-at-all", "token");
  expect_refused("", "token");
  // Somebody else at the primary's address, who asks for no token.
  gate_.reset();
  expect_refused("the-token-of-a-mirror", "it may be an impostor");
}

// --- A primary that breaks the rules

// The test says by itself what the primary says.
class HostilePrimaryOfMirrorTest : public MirrorTest {
 protected:
  void SetUp() override {
    MirrorTest::SetUp();
    primary_steps_ = false;
    for (format::MirrorHello& stream : streams_) stream = {{7}, 0, 0, 3, 0, 0};
  }
  void TearDown() override {
    channels_ = {};  // They are offered the primary's pool.
    MirrorTest::TearDown();
  }
  // Takes the links of these shards.
  void Accept(std::initializer_list<uint32_t> shards, size_t bytes = sizeof(Greeting)) {
    for (const uint32_t shard : shards) {
      std::unique_ptr<fabric::Incoming> incoming;
      ASSERT_TRUE(Until([&] { return (incoming = listener_->Poll()) != nullptr; }));
      Greeting greeting{};
      greeting.hello = HelloOfPrimary();
      greeting.stream = streams_[shard];
      fabric::Region* const offer[] = {readable_.get()};
      channels_[shard] = *incoming->Accept({server_.queue.get(), offer, BytesOf(greeting).first(bytes)});
      ASSERT_TRUE(Until([&] { return channels_[shard]->connected(); }));
    }
  }
  testing::AssertionResult UntilTold(const std::string& words) {
    return Until([&] { return Told(words) == 1; });
  }
  // Places bytes in the ring of a shard's link, and tells that.
  void Place(uint32_t shard, uint64_t bytes) {
    auto work = fabric::WriteImm(server_, 0, bytes, 0, static_cast<uint32_t>(bytes / format::kMirrorUnit));
    work.remote.region = format::kMirrorRingRegion;
    ASSERT_TRUE(Ok(fabric::Post(*channels_[shard], work)));
  }

  struct Greeting {
    format::HelloReply hello;
    format::MirrorHello stream;
  };
  std::array<format::MirrorHello, kShardsOfPrimary> streams_{};
  std::array<std::unique_ptr<fabric::Channel>, kShardsOfPrimary> channels_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, HostilePrimaryOfMirrorTest, testing::ValuesIn(fabric::AllWorlds()), fabric::KindName);

TEST_P(HostilePrimaryOfMirrorTest, ItSendsBeforeTheMirrorHasBegun) {
  Make();
  ASSERT_NO_FATAL_FAILURE(Accept({0}));
  ASSERT_NO_FATAL_FAILURE(Place(0, 16));
  EXPECT_TRUE(UntilTold("before the mirror has begun"));
}

TEST_P(HostilePrimaryOfMirrorTest, AfterMalformedEntriesTheMirrorMakesAnotherCopy) {
  fabric::Put(server_.bytes(0, 64), std::string(64, static_cast<char>(0xff)));
  Make();
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}));
  ASSERT_TRUE(Until([&] { return mirror_->state() >= Mirror::State::kCopying; }));
  ASSERT_NO_FATAL_FAILURE(Place(1, 64));
  ASSERT_TRUE(Until([&] { return mirror_->state() == Mirror::State::kApart; }));
  EXPECT_EQ(mirror_->last_error().code(), Code::kCorruption) << mirror_->last_error().ToString();
  channels_ = {};
  clock_.now += kLookTime;
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}));
  EXPECT_TRUE(Until([&] { return Copies() == 2; }));
}

TEST_P(HostilePrimaryOfMirrorTest, ItsStreamCannotBe) {
  streams_[1].flags = 4;
  Make({true, 3});
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}));
  EXPECT_TRUE(UntilTold("its stream is at impossible places"));
  EXPECT_TRUE(marks_.empty());
}

TEST_P(HostilePrimaryOfMirrorTest, ItsShardsDoNotAgree) {
  streams_[1].flags = format::kMirrorMayLack;
  Make({true, 3});
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}));
  EXPECT_TRUE(UntilTold("has started again meanwhile"));
  EXPECT_TRUE(marks_.empty());
}

// An honest primary does the same: the operator has changed the setting.
TEST_P(HostilePrimaryOfMirrorTest, AMarkGoesWhenThePrimaryOfTheSameStreamsMayGoOnAlone) {
  Make();
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}));
  ASSERT_TRUE(Until([&] { return mirror_->state() == Mirror::State::kJoining; }));
  for (const auto& channel : channels_) {
    auto joined = fabric::WriteImm(server_, 0, 0, 0, format::kMirrorWord);
    joined.local = {};
    ASSERT_TRUE(Ok(fabric::Post(*channel, joined)));
  }
  ASSERT_TRUE(Until([&] { return mirror_->state() == Mirror::State::kInSync; }));
  EXPECT_TRUE(mirror_->mark().in_sync);
  channels_ = {};
  ASSERT_TRUE(Until([&] { return mirror_->state() == Mirror::State::kApart; }));
  for (format::MirrorHello& stream : streams_) stream.alone_after = 1000;
  clock_.now += kLookTime;
  marks_.clear();
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}));
  ASSERT_TRUE(Until([&] { return mirror_->state() >= Mirror::State::kCopying; }));
  EXPECT_EQ(marks_, (std::vector<Mark>{{false, 3}}));
  EXPECT_EQ(Copies(), 1U);
}

TEST_P(HostilePrimaryOfMirrorTest, ItKnowsNoMirrors) {
  Make({true, 3});
  ASSERT_NO_FATAL_FAILURE(Accept({0, 1}, sizeof(format::HelloReply)));
  EXPECT_TRUE(UntilTold("no Erda server with mirrors"));
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
