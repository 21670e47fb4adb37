// The two ends of a link, over every fabric: what the primary sends is what the mirror stores, whatever either says.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "fabric/fixture.h"
#include "format/mirror_link.h"
#include "journal/entry.h"
#include "journal/stream.h"
#include "mirror/feed.h"
#include "mirror/fixture.h"

namespace erda::mirror {
namespace {

using fabric::End;
using fabric::OpKind;
using format::kMirrorRingBytesMin;
using journal::Place;
using journal::Stream;

// One mirror, whose end is that of the client.
class MirrorLinkTest : public MirrorFixture {
 protected:
  void TearDown() override { Unlink(); }

  // --- Both ends

  // Connects them. The mirror goes on with the stream at `from`, if it is not to begin at the end.
  void Link(std::optional<Place> from = std::nullopt, uint64_t ring_bytes = kMirrorRingBytesMin) {
    Unlink();
    mirror_.MakeRing(*client_.fabric, ring_bytes);
    fabric::Region* const of_mirror[] = {mirror_.region.get()};
    fabric::ChannelOptions mirror = Offer(client_, of_mirror);
    mirror.message_depth = format::kMirrorMessageDepth;
    fabric::ChannelPair pair = Connect(mirror, Offer(server_, {}));
    ASSERT_TRUE(pair.client && pair.server);
    mirror_.channel = std::move(pair.client);
    server_.channel = std::move(pair.server);
    hello_ = Feed::Hello(*stream_);
    feed_.emplace(*stream_, *server_.channel, hello_);
    ASSERT_TRUE(Ok(mirror_.Begin(hello_, from)));
  }
  void Unlink() {
    feed_.reset();
    mirror_.Unlink();
    server_.channel.reset();
    // A new channel may get the address of an old one.
    client_.events.clear();
    server_.events.clear();
  }

  // The mirror's messages, as they came, to the feed, and the primary's to the follower. They stop at an error.
  Status TakeAtPrimary() {
    return TakeAll(server_, [this](uint32_t imm) { return feed_->Take(imm); });
  }
  Status TakeAtMirror() {
    return TakeAll(client_, [this](uint32_t imm) { return mirror_.follower->Take(imm); });
  }
  template <class Take>
  static Status TakeAll(End& end, Take&& take) {
    for (const fabric::Event& event : std::exchange(end.events, {})) {
      EXPECT_EQ(event.code, Code::kOk);
      if (event.kind != OpKind::kReceiveImm) continue;
      if (auto status = take(event.imm); !status.ok()) return status;
    }
    return {};
  }
  // One step of each end, with all that has come.
  void Step() {
    Pump();
    ASSERT_TRUE(Ok(TakeAtPrimary()));
    ASSERT_TRUE(Ok(feed_->Send()));
    ASSERT_TRUE(Ok(TakeAtMirror()));
    ASSERT_TRUE(Ok(mirror_.StoreAll()));
    stream_->Release(feed_->stored());
  }
  // Steps until the primary knows that the mirror has all of the stream.
  void Follow() {
    for (size_t step = 0; feed_->stored() != stream_->end(); ++step) {
      ASSERT_LT(step, world_->patience());
      ASSERT_NO_FATAL_FAILURE(Step());
    }
  }
  [[nodiscard]] bool PoolsAreEqual() const { return IsEqual(mirror_); }
  // Says something in the name of one end.
  static void Say(fabric::Channel& channel, uint32_t imm) {
    fabric::WorkRequest work;
    work.kind = OpKind::kWriteImm;
    work.imm = imm;
    ASSERT_TRUE(fabric::Post(channel, work).ok());
  }
  Status HeardByPrimary(uint32_t imm) {
    Say(*mirror_.channel, imm);
    EXPECT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
    return TakeAtPrimary();
  }
  Status HeardByMirror(uint32_t imm) {
    Say(*server_.channel, imm);
    EXPECT_TRUE(PumpUntil(client_, OpKind::kReceiveImm));
    return TakeAtMirror();
  }

  MirrorEnd mirror_;
  format::MirrorHello hello_{};
  std::optional<Feed> feed_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, MirrorLinkTest, testing::ValuesIn(fabric::AllWorlds()), fabric::KindName);

// --- What is sent and stored

TEST_P(MirrorLinkTest, TheHelloTellsOfTheStream) {
  ASSERT_TRUE(Change(kFirst, 100, 1));
  const format::MirrorHello hello = Feed::Hello(*stream_);
  EXPECT_EQ(hello.stream, stream_->life().secret);
  EXPECT_EQ(hello.begin, kBegin);
  EXPECT_EQ(hello.end, kBegin + journal::EntrySpace(100));
}

TEST_P(MirrorLinkTest, TheMirrorGetsTheBytesAndTheFences) {
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(Change(kFirst, 100, 1));
  ASSERT_TRUE(Change(kFirst + 500, 8, 2, true));
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_TRUE(PoolsAreEqual());
  EXPECT_EQ(mirror_.pool.Taken(), (std::vector<std::string>{"8192+100", "fence", "8692+8", "fence"}));
}

TEST_P(MirrorLinkTest, TheMirrorBeginsWhereItSays) {
  ASSERT_TRUE(Change(kFirst, 100, 1));
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(Change(kFirst + 500, 8, 2));
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_EQ(mirror_.pool.Taken(), (std::vector<std::string>{"8692+8", "fence"}));
}

// The ring has another size than the stream's memory, so entries are torn at its end.
TEST_P(MirrorLinkTest, EveryEntryIsStoredOnceAndInOrder) {
  for (const auto& [stream_bytes, ring_bytes] : {std::pair(2 * kMirrorRingBytesMin, kMirrorRingBytesMin),
                                                 std::pair(kMirrorRingBytesMin, 4 * kMirrorRingBytesMin)}) {
    Random random(stream_bytes);
    changes_.clear();
    (void)mirror_.pool.Taken();
    ASSERT_NO_FATAL_FAILURE(MakeStream(stream_bytes, kBegin + 16 * random.Uniform(100)));
    ASSERT_NO_FATAL_FAILURE(Link(std::nullopt, ring_bytes));
    const Place begin = stream_->end();
    while (stream_->end() - begin < 4 * std::max(stream_bytes, ring_bytes)) {
      for (uint64_t changes = random.Uniform(40); changes > 0 && ChangeSomething(random); --changes) {
      }
      // Each end is sometimes late.
      ASSERT_TRUE(Ok(TakeAtPrimary()));
      if (random.Chance(0.7)) {
        ASSERT_TRUE(Ok(feed_->Send()));
      }
      Pump();
      ASSERT_TRUE(Ok(TakeAtMirror()));
      while (mirror_.follower->has_piece() && random.Chance(0.6)) ASSERT_TRUE(Ok(mirror_.follower->Store()));
      if (random.Chance(0.6)) {
        ASSERT_TRUE(Ok(mirror_.follower->Answer(*mirror_.channel)));
      }
      if (random.Chance(0.5)) stream_->Release(feed_->stored());
      ASSERT_LE(mirror_.follower->received() - feed_->stored(), ring_bytes);
    }
    ASSERT_NO_FATAL_FAILURE(Follow());
    EXPECT_TRUE(PoolsAreEqual());
    std::vector<std::string> stored = mirror_.pool.Taken();
    std::erase(stored, "fence");
    EXPECT_TRUE(stored == std::exchange(changes_, {})) << "once, and in order";
  }
}

TEST_P(MirrorLinkTest, ALateMirrorGetsNoMoreThanItsRingHolds) {
  ASSERT_NO_FATAL_FAILURE(MakeStream(8 * kMirrorRingBytesMin));
  ASSERT_NO_FATAL_FAILURE(Link());
  for (uint64_t i = 0; i < 12; ++i) ASSERT_TRUE(Change(kFirst + i, 50'000, i));
  Settle();
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  ASSERT_TRUE(Ok(feed_->Send()));
  Settle();
  ASSERT_TRUE(Ok(TakeAtMirror()));
  EXPECT_EQ(mirror_.follower->received() - hello_.end, 5 * journal::EntrySpace(50'000)) << "the ring has room for five";
  EXPECT_EQ(feed_->stored(), hello_.end);
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_TRUE(PoolsAreEqual());
}

TEST_P(MirrorLinkTest, FewPiecesAreUnderWayAndLaterOnesAreLonger) {
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  for (uint64_t i = 0; i < 3 * format::kMirrorPiecesMax; ++i) {
    ASSERT_TRUE(Change(kFirst + 8 * i, 8, i));
    ASSERT_TRUE(Ok(feed_->Send()));
  }
  Settle();
  EXPECT_EQ(client_.Count(OpKind::kReceiveImm), format::kMirrorPiecesMax);
  ASSERT_TRUE(Ok(TakeAtMirror()));
  ASSERT_TRUE(Ok(mirror_.follower->Store()));
  ASSERT_TRUE(Ok(mirror_.follower->Answer(*mirror_.channel)));
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  ASSERT_TRUE(Ok(feed_->Send()));
  Settle();
  ASSERT_EQ(client_.Count(OpKind::kReceiveImm), 1U);
  EXPECT_EQ(client_.events.back().imm, 2 * format::kMirrorPiecesMax * 2) << "units: two for each entry of 8 bytes";
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_TRUE(PoolsAreEqual());
}

TEST_P(MirrorLinkTest, NoPieceIsLongerThanItMayBe) {
  ASSERT_NO_FATAL_FAILURE(MakeStream(8 * kMirrorRingBytesMin));
  ASSERT_NO_FATAL_FAILURE(Link(std::nullopt, 8 * kMirrorRingBytesMin));
  for (uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(Change(kFirst + i, 50'000, i));
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  ASSERT_TRUE(Ok(feed_->Send()));
  Settle();
  ASSERT_GT(client_.Count(OpKind::kReceiveImm), 5U);
  for (const fabric::Event& event : client_.events) {
    EXPECT_LE(event.imm, Feed::kPieceBytesMax / format::kMirrorUnit);
  }
}

TEST_P(MirrorLinkTest, NothingIsAnsweredBeforeItIsStoredAndFenced) {
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  ASSERT_TRUE(Change(kFirst, 100, 1));
  ASSERT_TRUE(Ok(feed_->Send()));
  ASSERT_TRUE(PumpUntil(client_, OpKind::kReceiveImm));
  ASSERT_TRUE(Ok(TakeAtMirror()));
  ASSERT_TRUE(Ok(mirror_.follower->Answer(*mirror_.channel)));
  Settle();
  EXPECT_EQ(server_.Count(OpKind::kReceiveImm), 0U) << "the piece has come, and is not stored";
  ASSERT_TRUE(Ok(mirror_.follower->Store()));
  EXPECT_EQ(mirror_.pool.Taken().back(), "fence");
  ASSERT_TRUE(Ok(mirror_.follower->Answer(*mirror_.channel)));
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
  EXPECT_EQ(feed_->stored(), kBegin);
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  EXPECT_EQ(feed_->stored(), stream_->end());
}

// --- Joining

TEST_P(MirrorLinkTest, AMirrorJoinsAfterAllThatTheStreamHas) {
  ASSERT_NO_FATAL_FAILURE(MakeStream(8 * kMirrorRingBytesMin));
  ASSERT_NO_FATAL_FAILURE(Link());
  for (uint64_t i = 0; i < 12; ++i) ASSERT_TRUE(Change(kFirst + i, 50'000, i));
  EXPECT_FALSE(feed_->asks_to_join());
  ASSERT_TRUE(Ok(mirror_.follower->Join(*mirror_.channel)));
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm, 2));
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  ASSERT_TRUE(feed_->asks_to_join());
  feed_->Join();
  const Place joined_at = stream_->end();
  EXPECT_FALSE(feed_->asks_to_join());
  ASSERT_TRUE(Change(kFirst, 8, 99)) << "after it has joined";
  for (size_t step = 0; !mirror_.follower->has_joined(); ++step) {
    ASSERT_LT(step, world_->patience());
    ASSERT_LE(mirror_.follower->stored(), joined_at) << "it is told as soon as it has what came before";
    ASSERT_NO_FATAL_FAILURE(Step());
  }
  EXPECT_GE(mirror_.follower->stored(), joined_at);
  EXPECT_FALSE(feed_->in_sync());
  ASSERT_TRUE(Ok(mirror_.follower->Answer(*mirror_.channel)));
  ASSERT_TRUE(Ok(mirror_.follower->SayInSync(*mirror_.channel)));
  for (size_t step = 0; !feed_->in_sync(); ++step) {
    ASSERT_LT(step, world_->patience());
    ASSERT_NO_FATAL_FAILURE(Step());
  }
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_TRUE(PoolsAreEqual());
}

// The mirror stores at once, but the stream never has room for long.
TEST_P(MirrorLinkTest, AMirrorJoinsThoughTheStreamIsAlwaysFull) {
  ASSERT_NO_FATAL_FAILURE(MakeStream(8 * kMirrorRingBytesMin));
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(Ok(mirror_.follower->Join(*mirror_.channel)));
  uint64_t seed = 0;
  for (size_t step = 0; !mirror_.follower->has_joined(); ++step) {
    ASSERT_LT(step, 100'000U);
    while (Change(kFirst, 20'000, seed)) ++seed;
    ASSERT_NO_FATAL_FAILURE(Step());
    if (feed_->asks_to_join()) feed_->Join();
  }
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_TRUE(PoolsAreEqual());
}

TEST_P(MirrorLinkTest, AMirrorHasJoinedWhenItHasStoredWhatCameBefore) {
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(Change(kFirst, 100, 1));
  ASSERT_TRUE(Ok(mirror_.follower->Join(*mirror_.channel)));
  ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm, 2));
  ASSERT_TRUE(Ok(TakeAtPrimary()));
  feed_->Join();
  ASSERT_TRUE(Ok(feed_->Send()));
  ASSERT_TRUE(PumpUntil(client_, OpKind::kReceiveImm, 2));
  ASSERT_TRUE(Ok(TakeAtMirror()));
  EXPECT_FALSE(mirror_.follower->has_joined());
  ASSERT_TRUE(Ok(mirror_.follower->Store()));
  EXPECT_TRUE(mirror_.follower->has_joined());
}

// --- A lost link

TEST_P(MirrorLinkTest, ANewLinkGoesOnWhereTheMirrorWas) {
  Random random(5);
  Place from = kBegin;
  for (int links = 0; links < 5; ++links) {
    ASSERT_NO_FATAL_FAILURE(Link(from));
    for (int i = 0; i < 20 && ChangeSomething(random); ++i) {
    }
    for (int steps = 0; steps < 3; ++steps) ASSERT_NO_FATAL_FAILURE(Step());
    // Some answers of the mirror are lost.
    ASSERT_TRUE(Change(kFirst, 100, random.Next()));
    ASSERT_TRUE(Ok(feed_->Send()));
    Settle();
    ASSERT_TRUE(Ok(TakeAtMirror()));
    while (mirror_.follower->has_piece()) ASSERT_TRUE(Ok(mirror_.follower->Store()));
    from = mirror_.follower->stored();
    EXPECT_GE(from, stream_->released());
  }
  ASSERT_NO_FATAL_FAILURE(Link(from));
  ASSERT_NO_FATAL_FAILURE(Follow());
  EXPECT_TRUE(PoolsAreEqual());
}

// --- A mirror that breaks the rules

class HostileMirrorTest : public MirrorLinkTest {
 protected:
  void ExpectBroken(const Status& status, const std::string& words) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(words), std::string_view::npos) << status.ToString();
  }
  // The mirror has started, and three pieces of 48, 64 and 80 bytes are under way.
  void SendThree() {
    ASSERT_NO_FATAL_FAILURE(Link());
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
    ASSERT_TRUE(Ok(TakeAtPrimary()));
    for (const uint64_t size : {32, 48, 64}) {
      ASSERT_TRUE(Change(kFirst, size, size));
      ASSERT_TRUE(Ok(feed_->Send()));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, HostileMirrorTest, testing::ValuesIn(fabric::RealWorlds()), fabric::KindName);

TEST_P(HostileMirrorTest, ItStoresMoreThanWasSent) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  ExpectBroken(HeardByPrimary(3 + 4 + 5 + 1), "more than was sent");
  EXPECT_EQ(feed_->stored(), kBegin);
}

TEST_P(HostileMirrorTest, ItStoresAPartOfAPiece) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  ExpectBroken(HeardByPrimary(3 + 2), "inside of a piece");
  EXPECT_EQ(feed_->stored(), kBegin + 48) << "a place between two entries";
}

TEST_P(HostileMirrorTest, ItStoresSeveralPiecesAtOnce) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  EXPECT_TRUE(Ok(HeardByPrimary(3 + 4)));
  EXPECT_EQ(feed_->stored(), kBegin + 48 + 64);
}

TEST_P(HostileMirrorTest, ItJoinsTwice) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  EXPECT_TRUE(Ok(HeardByPrimary(0)));
  ExpectBroken(HeardByPrimary(0), "a second time");
}

TEST_P(HostileMirrorTest, ItIsInSyncBeforeItHasHeardThatItHasJoined) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  EXPECT_TRUE(Ok(HeardByPrimary(0)));
  EXPECT_TRUE(Ok(HeardByPrimary(3 + 4 + 5)));
  feed_->Join();
  ExpectBroken(HeardByPrimary(0), "a second time");
}

TEST_P(HostileMirrorTest, ItIsInSyncBeforeItHasStoredWhatCameBeforeItJoined) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  EXPECT_TRUE(Ok(HeardByPrimary(0)));
  feed_->Join();
  ASSERT_TRUE(Ok(feed_->Send()));
  EXPECT_TRUE(Ok(HeardByPrimary(3 + 4)));
  ExpectBroken(HeardByPrimary(0), "too soon");
  EXPECT_FALSE(feed_->in_sync());
}

TEST_P(HostileMirrorTest, ItIsInSyncTwice) {
  ASSERT_NO_FATAL_FAILURE(SendThree());
  EXPECT_TRUE(Ok(HeardByPrimary(0)));
  feed_->Join();
  ASSERT_TRUE(Ok(feed_->Send()));
  EXPECT_TRUE(Ok(HeardByPrimary(3 + 4 + 5)));
  EXPECT_TRUE(Ok(HeardByPrimary(0)));
  EXPECT_TRUE(feed_->in_sync());
  ExpectBroken(HeardByPrimary(0), "twice");
}

TEST_P(HostileMirrorTest, ItBeginsInsideOfAnEntryOrBehindTheEnd) {
  ASSERT_TRUE(Change(kFirst, 100, 1));
  const auto units = static_cast<uint32_t>(journal::EntrySpace(100) / format::kMirrorUnit);
  for (const uint32_t start : {1U, units - 1, units + 1, UINT32_MAX}) {
    ASSERT_NO_FATAL_FAILURE(Link());
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
    feed_.emplace(*stream_, *server_.channel, hello_);
    ExpectBroken(feed_->Take(start), "no entry");
    EXPECT_TRUE(Ok(feed_->Send()));
    Settle();
    EXPECT_EQ(client_.Count(OpKind::kReceiveImm), 0U) << "it gets nothing";
  }
}

TEST_P(HostileMirrorTest, ItOffersAnotherRing) {
  for (const uint64_t bytes : {uint64_t{4096}, kMirrorRingBytesMin / 2, 3 * kMirrorRingBytesMin}) {
    ASSERT_NO_FATAL_FAILURE(Link(std::nullopt, bytes));
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceiveImm));
    ExpectBroken(TakeAtPrimary(), "no ring");
  }
  fabric::ChannelPair pair = Connect(Offer(client_, {}), Offer(server_, {}));
  Feed feed(*stream_, *pair.server, Feed::Hello(*stream_));
  ExpectBroken(feed.Take(0), "no ring");
}

// --- A primary that breaks the rules

class HostilePrimaryTest : public HostileMirrorTest {
 protected:
  // Places bytes in the ring, and says so.
  Status HearPiece(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, mirror_.ring.bytes().begin() + static_cast<ptrdiff_t>(at_ % mirror_.ring.bytes().size()));
    at_ += bytes.size();
    auto status = HeardByMirror(static_cast<uint32_t>(bytes.size() / format::kMirrorUnit));
    return status.ok() ? mirror_.follower->Store() : status;
  }
  static std::vector<std::byte> Entry(journal::EntryHeader header, size_t space) {
    std::vector<std::byte> bytes(space, std::byte{1});
    std::ranges::copy(BytesOf(header), bytes.begin());
    return bytes;
  }

  Place at_ = kBegin;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, HostilePrimaryTest, testing::ValuesIn(fabric::RealWorlds()), fabric::KindName);

TEST_P(HostilePrimaryTest, ItsStreamIsAtImpossiblePlaces) {
  ASSERT_NO_FATAL_FAILURE(Link());
  constexpr uint64_t kMost = format::kMirrorStreamBytesMax;
  constexpr uint64_t kPlaces = uint64_t{1} << 63;
  const format::MirrorHello hellos[] = {
      {{}, 8, 16, 0, 0, 0},
      {{}, 16, 24, 0, 0, 0},
      {{}, 32, 16, 0, 0, 0},
      {{}, 0, kMost + 16, 0, 0, 0},
      {{}, kPlaces - 16, kPlaces, 0, 0, 0},
      {{}, 0, UINT64_MAX - 15, 0, 0, 0},
      {{}, 32, 64, 0, 2, 0},
  };
  for (const format::MirrorHello& hello : hellos) {
    EXPECT_EQ(mirror_.follower->Start(*mirror_.channel, hello, hello.end).code(), Code::kInvalidArgument);
  }
  const format::MirrorHello sound{{}, 32, 64, 0, 0, 0};
  EXPECT_TRUE(format::IsSound(sound));
  EXPECT_TRUE(format::IsSound({{}, 32, 64, UINT32_MAX, 1, UINT16_MAX}));
  EXPECT_TRUE(format::IsSound({{}, 16, kMost + 16, 0, 0, 0}));
  EXPECT_TRUE(format::IsSound({{}, kPlaces - 32, kPlaces - 16, 0, 0, 0}));
  for (const Place from : {16, 40, 80}) {
    const Status status = mirror_.follower->Start(*mirror_.channel, sound, from);
    EXPECT_EQ(status.message(), "the primary has its stream from place 32 to 64, and not at " + std::to_string(from));
  }
}

TEST_P(HostilePrimaryTest, ItPlacesMoreThanTheRingHolds) {
  ASSERT_NO_FATAL_FAILURE(Link());
  const auto all = static_cast<uint32_t>(kMirrorRingBytesMin / format::kMirrorUnit);
  EXPECT_TRUE(Ok(HeardByMirror(all - 1)));
  ExpectBroken(HeardByMirror(2), "room");
  for (const uint32_t units : {all + 1, UINT32_MAX}) {
    ASSERT_NO_FATAL_FAILURE(Link());
    ExpectBroken(HeardByMirror(units), "room");
  }
}

// The primary does not know yet that the mirror has stored them.
TEST_P(HostilePrimaryTest, ItPlacesMoreBeforeTheMirrorAnswers) {
  ASSERT_NO_FATAL_FAILURE(Link());
  const auto filler = Entry({0, 16, journal::EntryKind::kFiller, 0}, 32);
  at_ = stream_->end();
  ASSERT_TRUE(Ok(HearPiece(filler)));
  const auto all = static_cast<uint32_t>(kMirrorRingBytesMin / format::kMirrorUnit);
  ExpectBroken(HeardByMirror(all - 1), "room");
  ASSERT_NO_FATAL_FAILURE(Link());
  at_ = stream_->end();
  ASSERT_TRUE(Ok(HearPiece(filler)));
  ASSERT_TRUE(Ok(mirror_.follower->Answer(*mirror_.channel)));
  EXPECT_TRUE(Ok(HeardByMirror(all)));
}

TEST_P(HostilePrimaryTest, ItSendsMorePiecesThanMayBeUnderWay) {
  ASSERT_NO_FATAL_FAILURE(Link());
  for (uint32_t i = 0; i < format::kMirrorPiecesMax; ++i) ASSERT_TRUE(Ok(HeardByMirror(1)));
  ExpectBroken(HeardByMirror(1), "more pieces");
}

TEST_P(HostilePrimaryTest, ItLetsTheMirrorJoinWithoutBeingAsked) {
  ASSERT_NO_FATAL_FAILURE(Link());
  ExpectBroken(HeardByMirror(0), "did not ask");
  ASSERT_NO_FATAL_FAILURE(Link());
  ASSERT_TRUE(Ok(mirror_.follower->Join(*mirror_.channel)));
  EXPECT_TRUE(Ok(HeardByMirror(0)));
  ExpectBroken(HeardByMirror(0), "did not ask");
}

TEST_P(HostilePrimaryTest, ItSendsMalformedEntries) {
  using journal::EntryKind;
  const std::pair<const char*, journal::EntryHeader> headers[] = {
      {"an unknown kind", {kFirst, 16, EntryKind{9}, 0}},
      {"an unknown fence", {kFirst, 16, EntryKind::kBytes, 2}},
      {"longer than the piece", {kFirst, 17, EntryKind::kBytes, 0}},
      {"longer than any entry", {kFirst, UINT32_MAX, EntryKind::kBytes, 0}},
      {"past the end of the pool", {kPoolBytes - 8, 16, EntryKind::kBytes, 0}},
      {"past it by an overflow", {UINT64_MAX - 8, 16, EntryKind::kBytes, 0}},
      {"in the superblocks", {kFirst - 8, 16, EntryKind::kBytes, 0}},
      {"at their beginning", {0, 16, EntryKind::kBytes, 0}},
  };
  for (const auto& [what, header] : headers) {
    at_ = stream_->end();
    ASSERT_NO_FATAL_FAILURE(Link());
    EXPECT_EQ(HearPiece(Entry(header, 32)).code(), Code::kCorruption) << what;
    EXPECT_EQ(mirror_.follower->stored(), stream_->end());
  }
  EXPECT_TRUE(PoolsAreEqual()) << "nothing is stored";
}

// Each of them alone would be refused or stored.
TEST_P(HostilePrimaryTest, ItSendsAGoodEntryAfterABadOne) {
  std::vector<std::byte> piece = Entry({kFirst - 8, 16, journal::EntryKind::kBytes, 0}, 64);
  ASSERT_NO_FATAL_FAILURE(Link());
  std::ranges::copy(Entry({kFirst, 16, journal::EntryKind::kBytes, 0}, 32), piece.begin() + 32);
  at_ = stream_->end();
  EXPECT_EQ(HearPiece(piece).code(), Code::kCorruption);
  EXPECT_TRUE(PoolsAreEqual()) << "nothing is stored";
}

TEST(MirrorRingTest, ItsSizeIsAPowerOfTwoInItsBounds) {
  for (const uint64_t bytes :
       {format::kMirrorRingBytesMin, 2 * format::kMirrorRingBytesMin, format::kMirrorRingBytesMax}) {
    EXPECT_TRUE(format::IsMirrorRingSize(bytes)) << bytes;
  }
  for (const uint64_t bytes : {uint64_t{0}, format::kMirrorRingBytesMin / 2, format::kMirrorRingBytesMin + 16,
                               2 * format::kMirrorRingBytesMax}) {
    EXPECT_FALSE(format::IsMirrorRingSize(bytes)) << bytes;
  }
}

// The ring ends in the middle of the entry. The piece is longer than the longest entry.
TEST_P(HostilePrimaryTest, ItSendsATornEntryOfAnyLength) {
  constexpr uint64_t kPieceBytes = 2 * journal::kEntryBytesMax;
  for (const uint32_t size :
       {UINT32_MAX, uint32_t{2 * journal::kEntryBytesMax}, uint32_t{journal::kEntryBytesMax} + 1}) {
    ASSERT_NO_FATAL_FAILURE(MakeStream(kStreamBytes, kMirrorRingBytesMin - 16));
    ASSERT_NO_FATAL_FAILURE(Link());
    const auto piece = Entry({kFirst, size, journal::EntryKind::kBytes, 0}, kPieceBytes);
    std::ranges::copy(std::span(piece).first(16), mirror_.ring.bytes().end() - 16);
    std::ranges::copy(std::span(piece).subspan(16), mirror_.ring.bytes().begin());
    ASSERT_TRUE(Ok(HeardByMirror(kPieceBytes / format::kMirrorUnit)));
    EXPECT_EQ(mirror_.follower->Store().code(), Code::kCorruption);
  }
  EXPECT_TRUE(PoolsAreEqual()) << "nothing is stored";
}

TEST_P(HostilePrimaryTest, ItTearsAnEntryAtTheEndOfThePiece) {
  ASSERT_NO_FATAL_FAILURE(MakeStream(kStreamBytes, kMirrorRingBytesMin - 16));
  ASSERT_NO_FATAL_FAILURE(Link());
  const auto piece = Entry({kFirst, 65, journal::EntryKind::kBytes, 0}, 80);
  std::ranges::copy(std::span(piece).first(16), mirror_.ring.bytes().end() - 16);
  std::ranges::copy(std::span(piece).subspan(16), mirror_.ring.bytes().begin());
  ASSERT_TRUE(Ok(HeardByMirror(5)));
  EXPECT_EQ(mirror_.follower->Store().code(), Code::kCorruption);
  EXPECT_TRUE(PoolsAreEqual()) << "nothing is stored";
}

}  // namespace
}  // namespace erda::mirror
