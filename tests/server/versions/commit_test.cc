// Commits and sweeps. A version that is found whole becomes the new one, or the old one, or nothing.
#include <gtest/gtest.h>

#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

TEST(CommitTest, ACommitSettlesTheNewestVersion) {
  Store store;
  const Reserved reserved = store.Reserve("k", "v1");
  store.Land(reserved);
  EXPECT_EQ(store.Get("k"), kAbsent);
  EXPECT_EQ(store.Commit(reserved), Code::kOk);
  EXPECT_EQ(store.Get("k"), "v1");
  EXPECT_TRUE(store.WordOf("k").settled());
  EXPECT_EQ(store.versions().in_flight(), 0U);
}

TEST(CommitTest, ALateCommitBecomesTheOldOne) {
  Store store;
  store.Inline("k", "v1");
  const Reserved second = store.Reserve("k", "v2", 0);
  const Reserved third = store.Reserve("k", "v3", 1);
  ASSERT_TRUE(store.Finish(second));
  EXPECT_EQ(store.Get("k"), "v2");
  EXPECT_EQ(store.WordOf("k").new_address(), third.outcome.address);
  EXPECT_EQ(store.WordOf("k").old_address(), second.outcome.address);
  EXPECT_FALSE(store.WordOf("k").settled());
  ASSERT_TRUE(store.Finish(third));
  EXPECT_EQ(store.Get("k"), "v3");
}

TEST(CommitTest, ACommitOlderThanTheOldOneChangesNothing) {
  Store store;
  const Reserved first = store.Reserve("k", "v1", 0);
  const Reserved second = store.Reserve("k", "v2", 1);
  store.Reserve("k", "v3", 2);
  ASSERT_TRUE(store.Finish(second));
  const auto word = store.WordOf("k");
  ASSERT_TRUE(store.Finish(first));
  EXPECT_EQ(store.WordOf("k"), word);
  EXPECT_EQ(store.Get("k"), "v2");
}

TEST(CommitTest, ALateCommitUnderASettledNewestBecomesTheOldOne) {
  Store store;
  const Reserved first = store.Reserve("k", "v1", 0);
  const Reserved second = store.Reserve("k", "v2", 1);
  ASSERT_TRUE(store.Finish(second));
  EXPECT_TRUE(store.WordOf("k").old_address().none());
  ASSERT_TRUE(store.Finish(first));
  EXPECT_EQ(store.WordOf("k").old_address(), first.outcome.address);
  EXPECT_TRUE(store.WordOf("k").settled());
  EXPECT_EQ(store.Get("k"), "v2");
}

TEST(CommitTest, CommitOfAMissingValueIsRefusedAndMayBeTriedAgain) {
  Store store;
  store.Inline("k", "v1");
  const Reserved reserved = store.Reserve("k", "v2");
  const auto word = store.WordOf("k");
  EXPECT_EQ(store.Commit(reserved), Code::kCorruption);
  store.LandPart(reserved, 5);
  EXPECT_EQ(store.Commit(reserved), Code::kCorruption);
  EXPECT_EQ(store.WordOf("k"), word);
  EXPECT_EQ(store.Get("k"), "v1");
  EXPECT_TRUE(store.Finish(reserved));
  EXPECT_EQ(store.Get("k"), "v2");
}

TEST(CommitTest, CommitOfASettledVersionIsOk) {
  Store store;
  const Reserved first = store.Reserve("k", "v1", 0);
  store.Land(first);
  const Reserved second = store.Reserve("k", "v2", 1);  // settles the first
  store.Land(second);
  EXPECT_EQ(store.Sweep(), 1U);  // settles the second
  EXPECT_EQ(store.versions().in_flight(), 2U);
  EXPECT_EQ(store.Commit(first), Code::kOk);
  EXPECT_EQ(store.Commit(second), Code::kOk);
  EXPECT_EQ(store.versions().in_flight(), 0U);
  EXPECT_EQ(store.Get("k"), "v2");
}

// Each of these commits breaks the protocol, and changes nothing.
TEST(CommitTest, CommitOfAnotherSessionIsABreach) {
  Store store;
  store.Inline("k", "v0");
  const Reserved reserved = store.Reserve("k", "v1", 3);
  const Reserved placed = store.Reserve("other", "v", 3, Ack::kPlaced);
  store.Land(reserved);
  store.Land(placed);
  Reserved wrong = reserved;
  wrong.session = 4;
  EXPECT_EQ(store.Commit(wrong), std::nullopt);
  wrong = reserved;
  ++wrong.outcome.header.version;
  EXPECT_EQ(store.Commit(wrong), std::nullopt);
  wrong = reserved;
  wrong.outcome.address = format::LogAddress(reserved.outcome.address.raw() + 1);
  EXPECT_EQ(store.Commit(wrong), std::nullopt);
  wrong = reserved;
  wrong.outcome.head = 77;
  EXPECT_EQ(store.Commit(wrong), std::nullopt);
  wrong = reserved;
  wrong.key = "other";
  EXPECT_EQ(store.Commit(wrong), std::nullopt);
  EXPECT_EQ(store.Commit(placed), std::nullopt);  // put with kPlaced: no client waits for a commit
  EXPECT_EQ(store.Get("k"), "v0");
  EXPECT_EQ(store.Commit(reserved), Code::kOk);
  EXPECT_EQ(store.Commit(reserved), std::nullopt);  // twice
  EXPECT_EQ(store.Get("k"), "v1");
}

TEST(CommitTest, WithoutServerFlushEveryCommitIsABreach) {
  StoreOptions options;
  options.flush = FlushMethod::kNone;
  Store store(options);
  const Reserved reserved = store.Reserve("k", "v1");
  store.Land(reserved);
  EXPECT_EQ(store.Commit(reserved), std::nullopt);
  EXPECT_EQ(store.Get("k"), "v1");
}

TEST(CommitTest, ASweepSettlesPlacedPutsAndForgetsThem) {
  Store store;
  store.Inline("k", "v1");
  const Reserved arrived = store.Reserve("k", "v2", 0, Ack::kPlaced);
  const Reserved missing = store.Reserve("k", "v3", 0, Ack::kPlaced);
  store.Land(arrived);
  EXPECT_EQ(store.Sweep(), 1U);
  EXPECT_EQ(store.versions().in_flight(), 1U);
  EXPECT_EQ(store.WordOf("k").old_address(), arrived.outcome.address);
  EXPECT_EQ(store.Sweep(), 0U);
  store.Land(missing);
  EXPECT_EQ(store.Sweep(), 1U);
  EXPECT_TRUE(store.WordOf("k").settled());
  EXPECT_EQ(store.versions().in_flight(), 0U);
}

TEST(CommitTest, ASweepInSmallStepsGetsToEveryReservation) {
  Store store;
  std::vector<Reserved> reserved;
  for (int i = 0; i < 10; ++i) reserved.push_back(store.Reserve("key" + std::to_string(i), "v", 0, Ack::kPlaced));
  for (const Reserved& r : reserved) store.Land(r);
  size_t settled = 0;
  for (int i = 0; i < 10; ++i) settled += store.Sweep(1);
  EXPECT_EQ(settled, 10U);
  EXPECT_EQ(store.versions().in_flight(), 0U);
  EXPECT_EQ(store.Sweep(1), 0U);
}

// The damaged version may be newer than the committed one. An older value would then be wrong.
TEST(CommitTest, ADamagedHeaderIsNotTakenForAnOlderVersion) {
  for (const bool repaired : {false, true}) {
    Store store;
    store.SetFlush(0, FlushMethod::kNone);
    const Reserved first = store.Reserve("k", "v1", 0, Ack::kPlaced);
    const Reserved second = store.Reserve("k", "v2", 1);
    ASSERT_TRUE(store.Finish(second));
    std::byte damage = store.pool().bytes()[store.OffsetOf(second) + offsetof(format::ObjectHeader, version)];
    damage ^= std::byte{1};
    nvm::Writer(store.pool()).Write(store.OffsetOf(second) + offsetof(format::ObjectHeader, version), {&damage, 1});
    EXPECT_EQ(store.Get("k"), kDamaged);
    if (repaired) store.Reserve("k", "v3", 2);  // under way, so that the damaged version is now the old one
    store.Land(first);
    store.Sweep();
    EXPECT_EQ(store.Get("k"), kDamaged);
    store.EndSession(0);
    store.EndSession(2);
    EXPECT_EQ(store.Get("k"), kDamaged);
  }
}

// Between an unsettled newest version and a damaged old one, the shard acknowledges no version. Gets would pass it, and
// meet the damage.
TEST(CommitTest, ShardAcknowledgesNothingBetweenTheNewestAndADamagedOldVersion) {
  Store store;
  const Reserved old = store.Reserve("k", "v1");
  ASSERT_TRUE(store.Finish(old));
  const uint64_t at = store.OffsetOf(old) + offsetof(format::ObjectHeader, version);
  const std::byte damage = store.pool().bytes()[at] ^ std::byte{1};
  nvm::Writer(store.pool()).Write(at, {&damage, 1});
  const Reserved between = store.Reserve("k", "v2", 1);
  const Reserved newest = store.Reserve("k", "v3", 2);
  store.Land(between);
  EXPECT_EQ(store.Commit(between), Code::kCorruption);
  EXPECT_EQ(store.Get("k"), kDamaged);
  ASSERT_TRUE(store.Finish(newest));
  EXPECT_EQ(store.Get("k"), "v3");
  EXPECT_EQ(store.Commit(between), Code::kOk) << "it is older than what is settled";
  store.EndSession(1);
  EXPECT_EQ(store.Get("k"), "v3");
}

}  // namespace
}  // namespace erda::server
