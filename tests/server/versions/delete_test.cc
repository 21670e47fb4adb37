// Deletes: the versions that count as present, and those that must never come back.
#include <gtest/gtest.h>

#include <string>

#include "server/crash_pool.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

class DeleteTest : public testing::TestWithParam<FlushMethod> {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.flush = GetParam();
    return options;
  }
  // Expects that the key is absent, for a reader now and after a crash, and that its entry is free.
  void ExpectGone(std::string_view key) {
    EXPECT_EQ(store_.Get(key), kAbsent);
    EXPECT_EQ(store_.GetAfterCrash(key), kAbsent);
    EXPECT_TRUE(store_.WordOf(key).empty());
  }
  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, DeleteTest, EveryFlushMethod(), FlushMethodName);

TEST_P(DeleteTest, PresentKeyIsDeleted) {
  store_.Inline("k", "v1");
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  ExpectGone("k");
  EXPECT_EQ(store_.versions().index().census().used(), 0U);
}

TEST_P(DeleteTest, AbsentKeyIsNotFound) {
  EXPECT_EQ(store_.Delete("k"), Code::kNotFound);
  store_.Inline("k", "v1");
  EXPECT_EQ(store_.Delete("another"), Code::kNotFound);
  EXPECT_EQ(store_.Get("k"), "v1");
}

TEST_P(DeleteTest, TheSecondDeleteFindsNothing) {
  store_.Inline("k", "v1");
  store_.Reserve("k", "v2");
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  EXPECT_EQ(store_.Delete("k"), Code::kNotFound);
  ExpectGone("k");
}

TEST_P(DeleteTest, PutAfterADeleteStartsWithoutAnOldVersion) {
  store_.Inline("k", "v1");
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  const Reserved reserved = store_.Reserve("k", "v2");
  EXPECT_EQ(reserved.outcome.header.previous, 0U);
  EXPECT_TRUE(store_.WordOf("k").old_address().none());
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.Land(reserved);
  store_.Sweep();
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(DeleteTest, AKeyWhoseOnlyVersionIsInFlightIsNotFoundAndThePutGoesOn) {
  const Reserved reserved = store_.Reserve("k", "v1", 1, Ack::kPlaced);
  EXPECT_EQ(store_.Delete("k"), Code::kNotFound);
  EXPECT_FALSE(store_.WordOf("k").empty());
  store_.Land(reserved);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  ExpectGone("k");
}

TEST_P(DeleteTest, UnnoticedArrivalCountsAsPresent) {
  store_.Land(store_.Reserve("k", "v1", 1, Ack::kPlaced));
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  ExpectGone("k");
}

TEST_P(DeleteTest, DeleteFindsAWholeVersionBelowOneInFlight) {
  const Reserved first = store_.Reserve("k", "v1", 1, Ack::kPlaced);
  const Reserved second = store_.Reserve("k", "v2", 2, Ack::kPlaced);
  store_.Land(first);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  ExpectGone("k");
  store_.Land(second);
  store_.Sweep();
  ExpectGone("k");
}

TEST_P(DeleteTest, DeletedVersionInFlightDoesNotComeBackWhenItArrives) {
  store_.Inline("k", "v1");
  const Reserved placed = store_.Reserve("k", "v2", 1, Ack::kPlaced);
  const Reserved persisted = store_.Reserve("k", "v3", 2, Ack::kPersisted);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Land(placed);
  store_.Land(persisted);
  ExpectGone("k");
  store_.Sweep();
  ExpectGone("k");
  if (GetParam() == FlushMethod::kServerFlush) {
    EXPECT_EQ(store_.Commit(persisted), Code::kOk);  // the put took effect just before the delete
  }
  ExpectGone("k");
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

// A kPlaced put is acknowledged without the shard's knowledge. Here a later put covers it.
TEST_P(DeleteTest, DeletedVersionThatArrivedUnnoticedDoesNotComeBack) {
  const Reserved acknowledged = store_.Reserve("k", "v1", 1, Ack::kPlaced);
  store_.Reserve("k", "v2", 2, Ack::kPlaced);
  store_.Land(acknowledged);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Sweep();
  ExpectGone("k");
  store_.EndSession(1);
  store_.EndSession(2);
  ExpectGone("k");
}

TEST_P(DeleteTest, DeletedVersionInFlightDoesNotComeBackWhenItsClientDies) {
  store_.Inline("k", "v1");
  const Reserved arrives = store_.Reserve("k", "v2", 1);
  store_.Reserve("k", "v3", 2);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Land(arrives);
  store_.EndSession(2);
  ExpectGone("k");
  store_.EndSession(1);
  ExpectGone("k");
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

TEST_P(DeleteTest, DeletedVersionInFlightLeavesALaterPutAlone) {
  store_.Inline("k", "v1");
  const Reserved dies = store_.Reserve("k", "v2", 1);
  const Reserved arrives = store_.Reserve("k", "v3", 2);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  const Reserved later = store_.Reserve("k", "v4", 3, Ack::kPlaced);
  const auto word = store_.WordOf("k");
  store_.Land(arrives);
  store_.Sweep();
  store_.EndSession(1);
  store_.EndSession(2);
  EXPECT_EQ(store_.WordOf("k"), word);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.Land(later);
  EXPECT_EQ(store_.Get("k"), "v4");
  store_.Sweep();
  EXPECT_TRUE(store_.WordOf("k").old_address().none());
  EXPECT_EQ(store_.GetAfterCrash("k"), "v4");
}

TEST_P(DeleteTest, LaterPutThatDiesIsNotTakenBackToADeletedVersion) {
  store_.Inline("k", "v1");
  const Reserved superseded = store_.Reserve("k", "v2", 1, Ack::kPlaced);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Reserve("k", "v3", 2);
  store_.Land(superseded);
  store_.EndSession(2);
  ExpectGone("k");
}

TEST_P(DeleteTest, ASecondDeleteSupersedesTheLaterPutsToo) {
  store_.Inline("k", "v1");
  const Reserved first = store_.Reserve("k", "v2", 1, Ack::kPlaced);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Inline("k", "v3");
  const Reserved second = store_.Reserve("k", "v4", 1, Ack::kPlaced);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Land(first);
  store_.Land(second);
  store_.EndSession(1);
  ExpectGone("k");
}

TEST_P(DeleteTest, ReservationsOfOtherKeysStay) {
  store_.Inline("a", "a1");
  const Reserved other = store_.Reserve("b", "b1", 1, Ack::kPlaced);
  EXPECT_EQ(store_.Delete("a"), Code::kOk);
  store_.Land(other);
  store_.EndSession(1);
  EXPECT_EQ(store_.Get("b"), "b1");
}

TEST_P(DeleteTest, DeletedKeyStaysGoneAfterReopening) {
  store_.Inline("k", "v1");
  const Reserved superseded = store_.Reserve("k", "v2", 1);
  EXPECT_EQ(store_.Delete("k"), Code::kOk);
  store_.Land(superseded);
  store_.CloseAndReopen();
  ExpectGone("k");
  store_.Inline("k", "v3");
  EXPECT_EQ(store_.Get("k"), "v3");
}

TEST_P(DeleteTest, ADeleteTakesNoSpaceInTheLog) {
  for (int i = 0; i < 20; ++i) store_.Inline("key" + std::to_string(i), "v");
  store_.versions().part().PublishGauges();
  const uint64_t used = store_.counter(format::Counter::kLogBytesUsed);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(store_.Delete("key" + std::to_string(i)), Code::kOk);
  store_.versions().part().PublishGauges();
  EXPECT_EQ(store_.counter(format::Counter::kLogBytesUsed), used);
  EXPECT_EQ(store_.counter(format::Counter::kDeletes), 20U);
}

// Cuts the power at each fence of a delete. The key has the value or is absent. A client that reads at that moment sees
// no absence that a power cut could undo.
void ExpectTheValueOrNothing(bool placed_behind_one_in_flight) {
  StoreOptions options;
  auto pool = std::make_unique<CrashPool>(options.wish.pool_size);
  CrashPool& crash = *pool;
  Store store(options, std::move(pool));
  Random random(1);
  for (int round = 0; round < 10; ++round) {
    const std::string value = "v" + std::to_string(round);
    if (placed_behind_one_in_flight) {
      const Reserved reserved = store.Reserve("k", value, 1, Ack::kPlaced);
      store.Reserve("k", "never", 1);
      store.Land(reserved);
    } else {
      store.Inline("k", value);
      store.Reserve("k", "never", 1);
    }
    ASSERT_EQ(store.Get("k"), value);
    int fences = 0;
    bool gone = false;
    const auto look = [&] {
      ++fences;
      const bool seen_absent = store.Get("k") == kAbsent;
      for (int cut = 0; cut < 50; ++cut) {
        const CrashPool::Image image = crash.AfterPowerCut(random, cut * 0.02);
        const std::string found = ReadAfterCrash(store.BytesOfImage(std::as_bytes(std::span(image))), "k");
        if (gone || seen_absent) {
          EXPECT_EQ(found, kAbsent) << "at fence " << fences;
        } else {
          EXPECT_TRUE(found == value || found == kAbsent) << found << " at fence " << fences;
        }
      }
    };
    crash.before_fence = look;
    ASSERT_EQ(store.Delete("k"), Code::kOk);
    gone = true;
    look();
    crash.before_fence = nullptr;
    EXPECT_GE(fences, 4);
    store.EndSession(1);
  }
}

// Each tombstone replaces the last one at the same place. The shard counts the last one before that.
TEST(DeleteCountTest, LiveBytesAreExactAfterDeletes) {
  Store store;
  store.CountKeys(store.versions().index().size());
  const std::string longer(200, 'l');
  for (const int before : {0, 1, 64}) {
    store.Inline("hot", "value");
    store.Inline("s", "value");
    store.Inline(longer, "value");
    const uint64_t live = store.versions().CountRegions().bytes_live();
    for (int i = 0; i < before; ++i) store.Inline("hot", "value");
    ASSERT_EQ(store.Delete("s"), Code::kOk);
    ASSERT_EQ(store.Delete(longer), Code::kOk);
    const uint64_t gone = format::ObjectSpace(1, 5) + format::ObjectSpace(longer.size(), 5);
    ASSERT_EQ(store.versions().CountRegions().bytes_live(), live - gone) << "after " << before << " puts";
  }
}

// The log counts the objects of most puts by what the shard knows of them, and the others by their headers.
TEST(DeleteTest, BytesThatEntriesNameAreThoseOfTheNewestVersions) {
  Store store;
  store.CountKeys(store.versions().index().size());
  const auto live_after = [&] { return store.versions().CountRegions().bytes_live(); };
  for (const size_t bytes : {5, 300, 40, 0, 700}) {
    ASSERT_EQ(store.Inline("k", std::string(bytes, 'v')).code, Code::kOk);
    ASSERT_EQ(live_after(), format::ObjectSpace(1, bytes));
  }
  // The entry names two versions until the new one arrives. A put takes the place of both.
  ASSERT_EQ(store.Reserve("k", std::string(100, 'r'), 0, Ack::kPlaced).code(), Code::kOk);
  ASSERT_EQ(live_after(), format::ObjectSpace(1, 700) + format::ObjectSpace(1, 100));
  ASSERT_EQ(store.Inline("k", "value").code, Code::kOk);
  ASSERT_EQ(live_after(), format::ObjectSpace(1, 5));
  ASSERT_EQ(store.Inline("k", "next").code, Code::kOk);
  ASSERT_EQ(live_after(), format::ObjectSpace(1, 4));
  ASSERT_EQ(store.Delete("k"), Code::kOk);
  ASSERT_EQ(live_after(), 0U);
}

TEST(DeleteCrashTest, APowerCutInTheMiddleLeavesTheValueOrNothing) { ExpectTheValueOrNothing(false); }

TEST(DeleteCrashTest, APowerCutInADeleteBelowAVersionInFlightLeavesTheValueOrNothing) { ExpectTheValueOrNothing(true); }

}  // namespace
}  // namespace erda::server
