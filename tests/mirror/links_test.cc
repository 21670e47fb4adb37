// The primary's links of one shard: mirrors that come, join, are late, break the rules, and go.
#include "mirror/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "format/hello.h"
#include "mirror/fixture.h"

namespace erda::mirror {
namespace {

using fabric::OpKind;

constexpr Nanoseconds kTimeout = std::chrono::seconds(1);

// The mirrors are at the client's end, and share its queue.
class LinksTest : public MirrorFixture {
 protected:
  void TearDown() override {
    links_.reset();
    mirrors_.clear();
  }

  void Make(LinksOptions options = {}, Nanoseconds timeout = kTimeout) {
    options.timeout = timeout;
    options.clock = &clock_;
    options.tell = [this](std::string_view line) { told_.emplace_back(line); };
    const auto keep = [this](uint64_t id) {
      kept_.push_back(id);
      return keeps_;
    };
    membership_.emplace(named_, options.goes_alone ? Membership::Keep() : keep);
    links_.emplace(*stream_, server_.memory.view(), *membership_, std::move(options));
    ASSERT_TRUE(Ok(links_->Serve(std::span(&server_.fabric, 1))));
  }

  // --- Mirrors

  // A mirror connects, and begins at `from` or at the end. Returns null if it is refused.
  MirrorEnd* Come(uint64_t id, std::optional<Place> from = std::nullopt) {
    auto mirror = std::make_unique<MirrorEnd>();
    mirror->MakeRing(*client_.fabric, format::kMirrorRingBytesMin);
    format::HelloRequest request{};
    request.role = format::Role::kMirror;
    request.client_id = id;
    fabric::Region* const of_mirror[] = {mirror->region.get()};
    fabric::ChannelOptions options = Offer(client_, of_mirror);
    options.message_depth = format::kMirrorMessageDepth;
    options.private_data = BytesOf(request);
    mirror->channel = *client_.fabric->Connect(listener_->address(), options);
    const auto incoming = NextIncoming();
    if (incoming == nullptr) return nullptr;
    fabric::Region* const of_primary[] = {server_.region.get()};
    admitted_ = links_->Admit(*incoming, request, 0, of_primary, format::HelloReply{}, token_);
    if (!admitted_.ok()) {
      incoming->Reject({});
      mirrors_.push_back(std::move(mirror));
      return nullptr;
    }
    MirrorEnd* const come = mirrors_.emplace_back(std::move(mirror)).get();
    EXPECT_TRUE(Until([&] { return client_.Of(come->channel.get()).size() == 1; })) << "it is connected";
    std::erase_if(client_.events, [&](const fabric::Event& event) { return event.channel == come->channel.get(); });
    const auto said = come->channel->peer_data();
    EXPECT_EQ(said.size(), sizeof(format::HelloReply) + sizeof(format::MirrorHello));
    EXPECT_TRUE(Ok(come->Begin(LoadAs<format::MirrorHello>(said.subspan(sizeof(format::HelloReply))), from)));
    return come;
  }
  // The same; then it asks to join, and is in sync.
  MirrorEnd* ComeAndJoin(uint64_t id, std::optional<Place> from = std::nullopt) {
    MirrorEnd* const mirror = Come(id, from);
    if (mirror == nullptr) return nullptr;
    EXPECT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
    EXPECT_TRUE(Until([&] { return links_->in_sync() && held() == stream_->end(); }));
    return mirror;
  }
  // Its process dies.
  void Go(MirrorEnd* mirror) {
    if (stuck_ == mirror) stuck_ = nullptr;
    std::erase_if(client_.events, [&](const fabric::Event& event) { return event.channel == mirror->channel.get(); });
    std::erase_if(mirrors_, [mirror](const auto& each) { return each.get() == mirror; });
    const size_t left = links_->size() - 1;
    EXPECT_TRUE(Until([&] { return links_->size() == left; }));
  }

  // --- Steps

  void StepPrimary() {
    (void)links_->Poll();
    links_->Send();
  }
  // The mirrors take what has come, and store it but for those that are stuck.
  void StepMirrors() {
    for (const fabric::Event& event : std::exchange(client_.events, {})) {
      const auto mirror =
          std::ranges::find_if(mirrors_, [&](const auto& each) { return each->channel.get() == event.channel; });
      const bool begun = mirror != mirrors_.end() && (*mirror)->follower;
      if (!begun || event.kind != OpKind::kReceiveImm) {
        client_.events.push_back(event);
        continue;
      }
      EXPECT_TRUE(Ok((*mirror)->follower->Take(event.imm)));
    }
    for (const auto& mirror : mirrors_) {
      if (!mirror->follower || mirror.get() == stuck_ || mirror.get() == other_stuck_) continue;
      EXPECT_TRUE(Ok(mirror->StoreAll()));
      if (mirror.get() == silent_) continue;
      EXPECT_TRUE(Ok(mirror->SayInSync()));
    }
  }
  void Step() {
    Pump();
    StepPrimary();
    StepMirrors();
  }
  template <class Done>
  testing::AssertionResult Until(Done&& done) {
    for (size_t step = 0; step < world_->patience() / 10; ++step) {
      if (done()) return testing::AssertionSuccess();
      Step();
    }
    return testing::AssertionFailure() << "it never happened";
  }
  // Steps until nothing more can come.
  void Rest() {
    for (size_t step = 0; step < std::min<size_t>(world_->quiet(), 5000); ++step) Step();
  }
  // The time passes, in steps in which the shard looks at the clock.
  void Pass(Nanoseconds time) {
    for (int i = 0; i < 10; ++i) {
      clock_.now += time / 10;
      links_->Look();
    }
  }
  [[nodiscard]] Place held() const { return links_->held().load(); }
  [[nodiscard]] size_t Told(const std::string& words) const {
    return static_cast<size_t>(
        std::ranges::count_if(told_, [&](const std::string& line) { return line.find(words) != std::string::npos; }));
  }

  HandClock clock_;
  uint64_t named_ = 0;
  Status keeps_;  // Of the superblock's write.
  std::vector<uint64_t> kept_;
  std::optional<Membership> membership_;
  std::vector<std::string> told_;
  std::vector<std::unique_ptr<MirrorEnd>> mirrors_;
  // These take what comes, and store nothing.
  MirrorEnd* stuck_ = nullptr;
  MirrorEnd* other_stuck_ = nullptr;
  MirrorEnd* silent_ = nullptr;  // It does not say that it is in sync.
  uint64_t token_ = 0;           // Of mirrors that come.
  Status admitted_;
  std::optional<Links> links_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, LinksTest, testing::ValuesIn(fabric::AllWorlds()), fabric::KindName);

// --- What is held

TEST_P(LinksTest, NothingIsHeldBeforeAMirrorJoins) {
  Make();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  ASSERT_TRUE(Change(kFirst + 100, 100, 2));
  ASSERT_TRUE(Until([&] { return mirror->follower->stored() == stream_->end(); }));
  Rest();
  EXPECT_EQ(held(), kBegin) << "the mirror still copies";
  EXPECT_TRUE(links_->awaits_first());
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  EXPECT_TRUE(Until([&] { return mirror->follower->has_joined(); }));
  EXPECT_FALSE(links_->awaits_first());
  EXPECT_EQ(Told("mirror 0000000000000007"), 1U);
  EXPECT_EQ(Told("shard 0: in sync"), 1U);
}

TEST_P(LinksTest, OnlyWhatTheMirrorHasStoredIsHeld) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  const Place before = stream_->end();
  stuck_ = mirror;
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Rest();
  EXPECT_EQ(mirror->follower->received(), stream_->end());
  EXPECT_EQ(held(), before);
  EXPECT_EQ(stream_->released(), before);
  stuck_ = nullptr;
  ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  EXPECT_EQ(stream_->released(), stream_->end()) << "its room is free";
}

TEST_P(LinksTest, WithoutSyncAllIsHeldAndNoMirrorJoins) {
  Make({.sync = false});
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Change(kFirst, 100, 1));
  StepPrimary();
  EXPECT_EQ(held(), stream_->end());
  Rest();
  EXPECT_EQ(mirror->follower->stored(), stream_->end());
  EXPECT_FALSE(mirror->follower->has_joined());
  Pass(3 * kTimeout);
  EXPECT_FALSE(links_->stopped());
}

// --- Without a mirror

TEST_P(LinksTest, TheShardStopsAfterATimeWithoutAMirrorUntilOneIsInSync) {
  Make();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Pass(kTimeout * 9 / 10);
  EXPECT_FALSE(links_->stopped());
  Pass(kTimeout / 5);
  EXPECT_TRUE(links_->stopped());
  EXPECT_TRUE(links_->awaits_first());
  EXPECT_EQ(held(), kBegin);
  MirrorEnd* const mirror = Come(7, kBegin);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  Rest();
  EXPECT_TRUE(links_->stopped()) << "it has joined, and not stored what came before";
  stuck_ = nullptr;
  ASSERT_TRUE(Until([&] { return !links_->stopped(); }));
  EXPECT_EQ(held(), stream_->end());
  Pass(3 * kTimeout);
  EXPECT_FALSE(links_->stopped()) << "a mirror with nothing to do is no late mirror";
  EXPECT_EQ(links_->size(), 1U);
}

TEST_P(LinksTest, TheShardGoesOnAloneAfterATimeUntilAMirrorJoins) {
  Make({.goes_alone = true});
  MirrorEnd* mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  Go(mirror);
  EXPECT_FALSE(links_->awaits_first()) << "gets go on";
  ASSERT_TRUE(Change(kFirst, 100, 1));
  StepPrimary();
  EXPECT_EQ(held(), kBegin);
  Pass(kTimeout * 9 / 10);
  EXPECT_FALSE(links_->alone());
  Pass(kTimeout / 5);
  EXPECT_TRUE(links_->alone());
  EXPECT_EQ(held(), stream_->end());
  ASSERT_TRUE(Change(kFirst, 100, 2));
  StepPrimary();
  EXPECT_EQ(held(), stream_->end());

  mirror = ComeAndJoin(8);
  ASSERT_NE(mirror, nullptr);
  EXPECT_FALSE(links_->alone());
  stuck_ = mirror;
  const Place joined = stream_->end();
  ASSERT_TRUE(Change(kFirst, 100, 3));
  Rest();
  EXPECT_EQ(held(), joined) << "from now on the mirror has to store it";
}

// An answer that was given alone stays, though the mirror has not stored that yet.
TEST_P(LinksTest, WhatIsHeldNeverBecomesLess) {
  Make({.goes_alone = true});
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Pass(2 * kTimeout);
  ASSERT_EQ(held(), stream_->end());
  const Place before = held();
  MirrorEnd* const mirror = Come(7, kBegin);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return !links_->alone(); }));
  Rest();
  EXPECT_EQ(held(), before);
}

// --- Several mirrors

TEST_P(LinksTest, OneMirrorJoinsAndAnotherOneWhenItIsGivenUp) {
  Make({.goes_alone = true});
  MirrorEnd* const first = ComeAndJoin(7);
  MirrorEnd* const second = Come(8);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_TRUE(Ok(second->follower->Join(*second->channel)));
  ASSERT_TRUE(Change(kFirst, 100, 1));
  ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  Rest();
  EXPECT_FALSE(second->follower->has_joined());
  EXPECT_TRUE(IsEqual(*first) && IsEqual(*second));
  Go(first);
  Rest();
  EXPECT_FALSE(second->follower->has_joined()) << "the first one may come again";
  Pass(2 * kTimeout);
  EXPECT_TRUE(Until([&] { return second->follower->has_joined(); }));
  ASSERT_TRUE(Change(kFirst, 100, 2));
  EXPECT_TRUE(Until([&] { return held() == stream_->end(); }));
}

TEST_P(LinksTest, AMirrorThatJoinsAndIsGoneBeforeItIsInSyncChangesNothing) {
  Make();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Pass(2 * kTimeout);
  ASSERT_TRUE(links_->stopped());
  MirrorEnd* const mirror = Come(7, kBegin);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  Rest();
  Go(mirror);
  EXPECT_TRUE(links_->stopped());
  ASSERT_NE(ComeAndJoin(7, kBegin), nullptr);
  EXPECT_EQ(kept_, std::vector<uint64_t>{7}) << "it counts since it has joined for the first time";
}

// The mirror may have been in sync, and not know yet that its link is lost. Then it may be promoted.
TEST_P(LinksTest, AShardThatWasAloneWaitsAgainAfterALostLinkOfAMirrorThatJoined) {
  Make({.goes_alone = true});
  Pass(2 * kTimeout);
  ASSERT_TRUE(links_->alone());
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  silent_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return mirror->follower->has_joined(); }));
  const Place before = held();
  Go(mirror);
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Pass(kTimeout * 9 / 10);
  EXPECT_FALSE(links_->alone());
  EXPECT_EQ(held(), before);
  Pass(kTimeout / 5);
  EXPECT_TRUE(links_->alone());
  EXPECT_EQ(held(), stream_->end());
}

// --- In sync in all shards

// It may not have joined the other shards, or its superblock may not say that it is in sync.
TEST_P(LinksTest, NothingIsHeldBeforeTheMirrorSaysThatItIsInSync) {
  Make();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  MirrorEnd* const mirror = Come(7, kBegin);
  ASSERT_NE(mirror, nullptr);
  silent_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return mirror->follower->has_joined(); }));
  Rest();
  EXPECT_EQ(held(), kBegin);
  EXPECT_TRUE(links_->awaits_first());
  EXPECT_TRUE(links_->awaits_mirror());
  EXPECT_EQ(Told("in sync"), 0U);
  silent_ = nullptr;
  EXPECT_TRUE(Until([&] { return held() == stream_->end() && !links_->awaits_first(); }));
  EXPECT_EQ(Told("in sync"), 1U);
}

TEST_P(LinksTest, AMirrorThatDoesNotGetInSyncIsGoneAfterATime) {
  Make();
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  silent_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return mirror->follower->has_joined(); }));
  Rest();
  for (int times = 0; times < 20; ++times) {
    membership_->Progress();  // In another shard.
    Pass(kTimeout / 5);
    StepPrimary();
  }
  EXPECT_EQ(links_->size(), 1U);
  for (int times = 0; times < 7; ++times) {
    Pass(kTimeout / 5);
    StepPrimary();
  }
  EXPECT_EQ(links_->size(), 0U);
  EXPECT_EQ(Told("gone: it has stored nothing for too long"), 1U);
}

TEST_P(LinksTest, TheOtherShardsHearWhatAMirrorStoresThatJoins) {
  Make();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  MirrorEnd* const mirror = Come(7, kBegin);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  Rest();
  EXPECT_EQ(membership_->progress(), 0U);
  stuck_ = nullptr;
  ASSERT_TRUE(Until([&] { return links_->in_sync(); }));
  EXPECT_EQ(membership_->progress(), 1U);
  ASSERT_TRUE(Change(kFirst, 100, 2));
  ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  EXPECT_EQ(membership_->progress(), 1U) << "it is in sync";
}

// --- Which mirror counts

TEST_P(LinksTest, AMirrorThatTheSuperblockCannotNameDoesNotJoin) {
  Make();
  keeps_ = Status(Code::kUnavailable, "the disk is full");
  MirrorEnd* mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return links_->size() == 0; }));
  EXPECT_EQ(Told("gone: the disk is full"), 1U);
  EXPECT_FALSE(mirror->follower->has_joined());
  keeps_ = {};
  ASSERT_NE(ComeAndJoin(8), nullptr) << "none counts yet";
  EXPECT_EQ(kept_, (std::vector<uint64_t>{7, 8}));
}

TEST_P(LinksTest, OnlyTheMirrorThatTheSuperblockNamesJoins) {
  named_ = 7;
  Make();
  MirrorEnd* const other = Come(8);
  ASSERT_NE(other, nullptr);
  ASSERT_TRUE(Ok(other->follower->Join(*other->channel)));
  Rest();
  EXPECT_FALSE(other->follower->has_joined());
  MirrorEnd* const named = ComeAndJoin(7);
  ASSERT_NE(named, nullptr);
  EXPECT_TRUE(kept_.empty());
  // It is lost, and its superblock says that it is in sync.
  Go(named);
  Pass(3 * kTimeout);
  Rest();
  EXPECT_FALSE(other->follower->has_joined());
  EXPECT_TRUE(links_->stopped());
  ASSERT_NE(ComeAndJoin(7), nullptr);
}

TEST_P(LinksTest, AMirrorThatAnotherShardHasGivenUpMakesRoomForTheNext) {
  Make({.goes_alone = true});
  MirrorEnd* const first = ComeAndJoin(7);
  MirrorEnd* const second = Come(8);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_TRUE(Ok(second->follower->Join(*second->channel)));
  Rest();
  EXPECT_FALSE(second->follower->has_joined());
  EXPECT_TRUE(links_->awaits_mirror()) << "the other shard does not tell";
  membership_->GiveUp(7);
  ASSERT_TRUE(Until([&] { return second->follower->has_joined() && links_->in_sync(); }));
  EXPECT_EQ(Told("gone: another shard goes on without it"), 1U);
  EXPECT_TRUE(membership_->Counts(8));
  EXPECT_EQ(links_->size(), 1U);
}

TEST_P(LinksTest, AMirrorThatComesAgainAndJoinsIsNotGivenUp) {
  Make({.goes_alone = true});
  MirrorEnd* mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  const Place from = mirror->follower->stored();
  Go(mirror);
  mirror = Come(7, from);
  ASSERT_NE(mirror, nullptr);
  silent_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  ASSERT_TRUE(Until([&] { return mirror->follower->has_joined(); }));
  for (int times = 0; times < 20; ++times) {
    membership_->Progress();  // It stores what another shard has.
    Pass(kTimeout / 5);
    StepPrimary();
  }
  EXPECT_EQ(links_->size(), 1U);
  EXPECT_TRUE(membership_->Counts(7));
}

TEST_P(LinksTest, TheTimeWithoutAMirrorBeginsWhenItsLinkHasEnded) {
  Make({.goes_alone = true});
  ASSERT_NE(ComeAndJoin(7), nullptr);
  ASSERT_TRUE(Change(kFirst, 100, 1));
  membership_->GiveUp(7);
  links_->Look();
  ASSERT_EQ(links_->size(), 0U);
  clock_.now += kTimeout - std::chrono::milliseconds(1);
  EXPECT_FALSE(links_->Look());
  clock_.now += std::chrono::milliseconds(1);
  EXPECT_TRUE(links_->Look());
}

// The process before it may have told its mirror a longer time.
TEST_P(LinksTest, ANewProcessDoesNotGoOnAloneTooSoon) {
  Make({.goes_alone = true}, std::chrono::milliseconds(10));
  links_->Look();
  clock_.now += std::chrono::milliseconds(format::kMirrorAloneAfterMax - 1);
  EXPECT_FALSE(links_->Look());
  clock_.now += std::chrono::milliseconds(1);
  EXPECT_TRUE(links_->Look());
  EXPECT_TRUE(links_->alone());
}

TEST_P(LinksTest, ALookTellsWhetherTheShardMayAnswerMore) {
  Make({.goes_alone = true});
  ASSERT_TRUE(Change(kFirst, 100, 1));
  EXPECT_FALSE(links_->Look());
  clock_.now += 2 * kTimeout;
  EXPECT_TRUE(links_->Look());
  EXPECT_TRUE(links_->alone());
  EXPECT_FALSE(links_->Look());
}

TEST_P(LinksTest, AShardLooksWhetherAnotherOneHasGivenItsMirrorUp) {
  Make({.goes_alone = true});
  ASSERT_NE(ComeAndJoin(7), nullptr);
  membership_->GiveUp(7);
  links_->Look();
  EXPECT_EQ(links_->size(), 0U);
  ASSERT_TRUE(Change(kFirst, 100, 1));
  StepPrimary();
  EXPECT_NE(held(), stream_->end()) << "the mirror may not know yet that its links are lost";
}

TEST_P(LinksTest, AMirrorNeedsAnId) {
  Make();
  EXPECT_EQ(Come(0), nullptr);
  EXPECT_EQ(admitted_.code(), Code::kInvalidArgument);
}

TEST(MembershipTest, OneMirrorCountsUntilItIsGivenUp) {
  Membership membership(0, {});
  EXPECT_TRUE(membership.Join(7).ok());
  EXPECT_TRUE(membership.Join(7).ok()) << "another shard";
  EXPECT_EQ(membership.Join(8).code(), Code::kConflict);
  membership.GiveUp(8);
  EXPECT_TRUE(membership.Counts(7));
  membership.GiveUp(7);
  EXPECT_FALSE(membership.Counts(7));
  EXPECT_TRUE(membership.Join(8).ok());
}

TEST(MembershipTest, TheSuperblockNamesTheMirrorThatCounts) {
  uint64_t kept = 0;
  Membership membership(0, [&kept](uint64_t id) {
    kept = id;
    return Status();
  });
  EXPECT_TRUE(membership.Join(7).ok());
  EXPECT_EQ(kept, 7U);
  EXPECT_EQ(membership.Join(8).code(), Code::kConflict);
  EXPECT_EQ(kept, 7U);
}

TEST_P(LinksTest, TheTimeWithoutAMirrorBeginsWithTheFirstLook) {
  Make();
  clock_.now += 10 * kTimeout;  // A recovery.
  links_->Look();
  EXPECT_FALSE(links_->stopped());
  clock_.now += 2 * kTimeout;
  links_->Look();
  EXPECT_TRUE(links_->stopped());
}

TEST_P(LinksTest, AShardThatWentOnAloneServesClientsAlsoWhileAMirrorJoins) {
  Make({.goes_alone = true});
  EXPECT_TRUE(links_->awaits_first());
  Pass(2 * kTimeout);
  EXPECT_FALSE(links_->awaits_first());
  ASSERT_TRUE(Change(kFirst, 100, 1));
  MirrorEnd* const mirror = Come(7, kBegin);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  Rest();
  EXPECT_FALSE(links_->alone());
  EXPECT_FALSE(links_->awaits_first());
}

TEST_P(LinksTest, TheMirrorOfAnotherShardKeepsOthersFromJoining) {
  Make({.goes_alone = true});
  ASSERT_TRUE(Ok(membership_->Join(9))) << "another shard";
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  Rest();
  EXPECT_FALSE(mirror->follower->has_joined());
  Pass(2 * kTimeout);
  EXPECT_TRUE(links_->awaits_mirror()) << "nobody wakes the shard when that one leaves";
  membership_->GiveUp(9);
  EXPECT_TRUE(Until([&] { return mirror->follower->has_joined(); }));
  EXPECT_TRUE(membership_->Counts(7));
}

TEST_P(LinksTest, TheStreamKeepsWhatTheSlowestNeeds) {
  Make();
  MirrorEnd* const fast = ComeAndJoin(7);
  MirrorEnd* const slow = Come(8);
  ASSERT_TRUE(fast != nullptr && slow != nullptr);
  stuck_ = slow;
  const Place before = stream_->end();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  Rest();
  EXPECT_EQ(stream_->released(), before);
  Go(slow);
  Rest();
  EXPECT_EQ(stream_->released(), stream_->end());
}

// The copy that another mirror makes does not matter.
TEST_P(LinksTest, TheStreamKeepsForAWhileWhatALostMirrorNeeds) {
  Make();
  MirrorEnd* mirror = ComeAndJoin(7);
  MirrorEnd* const other = Come(8);
  ASSERT_TRUE(mirror != nullptr && other != nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Rest();
  const Place from = mirror->follower->stored();
  Go(mirror);
  Rest();
  EXPECT_EQ(stream_->released(), from);
  mirror = ComeAndJoin(7, from);
  ASSERT_NE(mirror, nullptr);
  EXPECT_EQ(stream_->released(), stream_->end());

  stuck_ = mirror;
  ASSERT_TRUE(Change(kFirst, 100, 2));
  Rest();
  Go(mirror);
  Pass(2 * kTimeout);
  Rest();
  EXPECT_EQ(stream_->released(), stream_->end()) << "it was gone for too long";
}

TEST_P(LinksTest, TheStreamKeepsWhatAMirrorNeedsThatIsLostAgainBeforeItIsInSync) {
  Make();
  MirrorEnd* mirror = ComeAndJoin(7);
  MirrorEnd* const other = Come(8);
  ASSERT_TRUE(mirror != nullptr && other != nullptr);
  const Place from = mirror->follower->stored();
  Go(mirror);
  ASSERT_TRUE(Change(kFirst, 100, 1));
  mirror = Come(7, from);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  ASSERT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
  Rest();
  Go(mirror);
  Rest();
  EXPECT_EQ(other->follower->stored(), stream_->end());
  EXPECT_EQ(stream_->released(), from);
  EXPECT_NE(ComeAndJoin(7, from), nullptr);
}

TEST_P(LinksTest, AMirrorThatComesAgainTakesThePlaceOfItsOldLink) {
  Make();
  MirrorEnd* const old = ComeAndJoin(7);
  ASSERT_NE(old, nullptr);
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  EXPECT_EQ(links_->size(), 1U);
  EXPECT_EQ(Told("gone: it has come again"), 1U);
  ASSERT_TRUE(Change(kFirst, 100, 1));
  EXPECT_TRUE(Until([&] { return held() == stream_->end() && mirror->follower->stored() == stream_->end(); }));
}

TEST_P(LinksTest, TooManyMirrorsAreRefused) {
  Make();
  for (uint64_t id = 1; id <= Links::kLinksMax; ++id) ASSERT_NE(Come(id), nullptr);
  EXPECT_EQ(Come(100), nullptr);
  EXPECT_EQ(admitted_.code(), Code::kResourceExhausted);
  EXPECT_EQ(links_->size(), Links::kLinksMax);
  EXPECT_NE(Come(3), nullptr) << "it comes again";
  EXPECT_EQ(links_->size(), Links::kLinksMax);
  ASSERT_TRUE(Ok(membership_->Join(100)));
  EXPECT_NE(Come(100), nullptr) << "it counts";
}

TEST_P(LinksTest, AMirrorWhoseTokenDoesNotCountAnyMoreIsGone) {
  Make();
  token_ = 5;
  MirrorEnd* const first = ComeAndJoin(7);
  token_ = 6;
  MirrorEnd* const second = Come(8);
  token_ = 0;
  MirrorEnd* const third = Come(9);
  ASSERT_TRUE(first != nullptr && second != nullptr && third != nullptr);
  first->follower.reset();
  links_->EndOthers([](uint64_t token) { return token == 6; });
  EXPECT_EQ(links_->size(), 2U) << "the server demanded no token of the third";
  EXPECT_FALSE(links_->in_sync()) << "at once";
  EXPECT_EQ(Told("mirror 0000000000000007"), 2U) << "it was in sync, and is gone";
  EXPECT_EQ(Told("gone: its token was removed"), 1U);
  EXPECT_TRUE(Until([&] {
    return std::ranges::any_of(client_.events, [&](const fabric::Event& event) {
      return event.channel == first->channel.get() && event.kind == OpKind::kClosed;
    });
  }));
}

// --- Late mirrors

TEST_P(LinksTest, ALateMirrorIsGoneAfterATime) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  Pass(10 * kTimeout);  // Nothing to do.
  stuck_ = mirror;
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Rest();
  Pass(kTimeout * 9 / 10);
  EXPECT_EQ(links_->size(), 1U);
  Pass(kTimeout / 5);
  EXPECT_EQ(links_->size(), 0U);
  EXPECT_EQ(Told("gone: it has stored nothing for too long"), 1U);
  EXPECT_FALSE(links_->stopped()) << "the time without a mirror begins now";
  Pass(kTimeout * 11 / 10);
  EXPECT_TRUE(links_->stopped());
}

TEST_P(LinksTest, AMirrorThatHadNothingToDoForLongIsNotLate) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  links_->Look();
  clock_.now += 10 * kTimeout;  // The shard sleeps.
  stuck_ = mirror;
  ASSERT_TRUE(Change(kFirst, 100, 1));
  Rest();
  links_->Look();
  EXPECT_EQ(links_->size(), 1U);
}

TEST_P(LinksTest, AMirrorThatStoresAPieceNowAndThenStays) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  for (uint64_t i = 0; i < 8; ++i) {
    stuck_ = mirror;
    ASSERT_TRUE(Change(kFirst, 100, i));
    Rest();
    Pass(kTimeout * 8 / 10);
    ASSERT_EQ(links_->size(), 1U);
    stuck_ = nullptr;
    ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  }
}

TEST_P(LinksTest, AMirrorThatSaysNothingIsGoneAfterATime) {
  Make();
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  // The primary does not poll its first message.
  Pass(kTimeout * 13 / 10);
  EXPECT_EQ(links_->size(), 0U);
}

// --- Room

TEST_P(LinksTest, AShardWithoutRoomWaitsForTheMirror) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  uint64_t seed = 0;
  while (Change(kFirst, 5000, seed)) ++seed;
  for (int i = 0; i < 10; ++i) {
    links_->AwaitRoom();
    Step();
    EXPECT_FALSE(Change(kFirst, 5000, seed));
  }
  stuck_ = nullptr;
  for (size_t step = 0; !Change(kFirst, 5000, seed); ++step) {
    ASSERT_LT(step, world_->patience());
    links_->AwaitRoom();
    world_->Advance();
    client_.Poll();
    StepMirrors();
  }
  ASSERT_TRUE(Until([&] { return held() == stream_->end(); }));
  EXPECT_TRUE(IsEqual(*mirror));
}

TEST_P(LinksTest, AShardWithoutRoomGivesALateMirrorUp) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  stuck_ = mirror;
  uint64_t seed = 0;
  while (Change(kFirst, 5000, seed)) ++seed;
  const Place before = held();
  for (int looks = 0; !Change(kFirst, 5000, seed); ++looks) {
    ASSERT_LT(looks, 100);
    clock_.now += kTimeout / 10;
    links_->AwaitRoom();
  }
  EXPECT_EQ(links_->size(), 0U);
  EXPECT_EQ(held(), before) << "room is not held";
}

TEST_P(LinksTest, AShardWithoutMirrorsHasRoomAtOnce) {
  Make();
  uint64_t seed = 0;
  while (Change(kFirst, 5000, seed)) ++seed;
  links_->AwaitRoom();
  EXPECT_TRUE(Change(kFirst, 5000, seed));
  EXPECT_EQ(held(), kBegin);
}

// --- Mirrors that break the rules

TEST_P(LinksTest, AMirrorThatBreaksTheRulesIsGone) {
  Make();
  MirrorEnd* const mirror = ComeAndJoin(7);
  MirrorEnd* const other = Come(8);
  ASSERT_TRUE(mirror != nullptr && other != nullptr);
  Rest();
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.imm = 1000;
  const fabric::WorkRequest twice[] = {work, work};
  ASSERT_TRUE(mirror->channel->Post(twice).ok());
  for (int i = 0; i < 100; ++i) world_->Advance();  // Both come at once.
  ASSERT_TRUE(Until([&] { return links_->size() == 1; }));
  EXPECT_EQ(Told("gone: the mirror broke the protocol: it says that it has stored more than was sent"), 1U);
  mirror->follower.reset();
  ASSERT_TRUE(Change(kFirst, 100, 1));
  EXPECT_TRUE(Until([&] { return other->follower->stored() == stream_->end(); })) << "the others go on";
}

TEST_P(LinksTest, AMirrorThatSendsBytesIsGone) {
  Make();
  MirrorEnd* const mirror = Come(7);
  ASSERT_NE(mirror, nullptr);
  ASSERT_TRUE(fabric::Post(*mirror->channel, fabric::Send(client_, 0, 10)).ok());
  ASSERT_TRUE(Until([&] { return links_->size() == 0; }));
  EXPECT_EQ(Told("it sends a message of bytes"), 1U);
}

// --- Waiting for all

TEST_P(LinksTest, AwaitHeldWaitsForTheMirror) {
  LinksOptions options;
  options.wait = [this](std::span<fabric::CompletionQueue* const> queues) {
    EXPECT_EQ(queues.size(), 1U);
    world_->Advance();
    client_.Poll();
    StepMirrors();
  };
  Make(std::move(options));
  ASSERT_NE(ComeAndJoin(7), nullptr);
  ASSERT_TRUE(Change(kFirst, 100, 1));
  EXPECT_TRUE(Ok(links_->AwaitHeld()));
  EXPECT_EQ(held(), stream_->end());
}

// A mirror that comes again may be what the shard waits for.
TEST_P(LinksTest, MirrorsAreAdmittedWhileTheShardWaits) {
  size_t admitted = 0;
  LinksOptions options;
  options.wait = [](std::span<fabric::CompletionQueue* const> /*queues*/) {};
  Make(std::move(options));
  MirrorEnd* mirror = ComeAndJoin(7);
  ASSERT_NE(mirror, nullptr);
  links_->OnWait([&] { ++admitted; });
  stuck_ = mirror;
  uint64_t seed = 0;
  while (Change(kFirst, 5000, seed)) ++seed;
  links_->AwaitRoom();
  EXPECT_EQ(admitted, 1U);
  const Place from = mirror->follower->stored();
  Go(mirror);
  links_->OnWait([&] {
    if (++admitted > 2) return;
    mirror = Come(7, from);
    ASSERT_NE(mirror, nullptr);
    EXPECT_TRUE(Ok(mirror->follower->Join(*mirror->channel)));
    EXPECT_TRUE(Until([&] { return links_->in_sync(); }));
  });
  EXPECT_TRUE(Ok(links_->AwaitHeld()));
  EXPECT_EQ(links_->size(), 1U);
}

TEST_P(LinksTest, AwaitHeldEndsWhenTheShardStops) {
  LinksOptions options;
  options.wait = [this](std::span<fabric::CompletionQueue* const> /*queues*/) { clock_.now += kTimeout / 10; };
  Make(std::move(options));
  ASSERT_TRUE(Change(kFirst, 100, 1));
  EXPECT_EQ(links_->AwaitHeld().code(), Code::kUnavailable);
  EXPECT_TRUE(links_->stopped());
}

}  // namespace
}  // namespace erda::mirror
