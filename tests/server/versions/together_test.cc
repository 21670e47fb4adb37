// Puts of one batch share their fences. Otherwise each is as if it had come alone. recovery_test.cc cuts the power in
// the middle of a batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"
#include "base/test_hash.h"
#include "server/store.h"
#include "tests/format/first_blocks.h"

namespace erda::server {
namespace {

using format::Counter;

// PublishBatch::Publish alone makes the proof: no caller can make up its own, also not with braces.
static_assert(!std::is_default_constructible_v<AllPublished> && !std::is_aggregate_v<AllPublished>);
static_assert(!std::is_invocable_v<decltype(&Moving::Move), Moving&, uint64_t, format::LogAddress, format::LogAddress>);

// Functions take the proof by value: one that was made before a later put cannot be passed on.
static_assert(!std::is_copy_constructible_v<AllPublished> && !std::is_move_constructible_v<AllPublished>);
static_assert(!std::is_copy_assignable_v<AllPublished> && !std::is_move_assignable_v<AllPublished>);
static_assert(!std::is_invocable_v<decltype(&Moving::Move), Moving&, const AllPublished&, uint64_t, format::LogAddress,
                                   format::LogAddress>);

// The log shows its counts only for the proof that it has heard of all published changes, made in the call itself.
static_assert(!std::is_invocable_v<decltype(&log::ShardLog::counts), log::ShardLog&>);
static_assert(!std::is_invocable_v<decltype(&log::ShardLog::counts), log::ShardLog&, const index::AllTold&>);

class TogetherTest : public testing::Test {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.wish.index_entries = 1024;
    options.wish.pool_size += 16 * 1024;
    return options;
  }
  static uint64_t FencesOf(Store& store) {
    store.versions().part().PublishGauges();
    return store.counter(Counter::kNvmFences);
  }
  uint64_t Fences() { return FencesOf(store_); }
  // Returns keys whose neighbourhoods have no slot in common.
  [[nodiscard]] std::vector<std::string> FarKeys(size_t count) const {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      std::string key = "far" + std::to_string(i);
      const uint64_t home = format::FirstHome(store_.geometry(), HashKey(key));
      if (home / 64 == 2 * keys.size()) keys.push_back(std::move(key));
    }
    return keys;
  }
  [[nodiscard]] std::vector<std::string> NearKeys(size_t count) const {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      std::string key = "near" + std::to_string(i);
      if (format::FirstHome(store_.geometry(), HashKey(key)) / 64 == 5) keys.push_back(std::move(key));
    }
    return keys;
  }
  Store store_{Options()};
};

TEST_F(TogetherTest, BatchTakesTwoFences) {
  const auto keys = FarKeys(6);
  store_.Inline("warm", "value");
  for (const char* value : {"new", "again"}) {  // new entries, then existing ones
    const uint64_t before = Fences();
    store_.PutTogether();
    for (const std::string& key : keys) EXPECT_EQ(store_.Inline(key, value).code, Code::kOk);
    EXPECT_EQ(Fences(), before);
    store_.PublishTogether();
    EXPECT_EQ(Fences(), before + 2);
    for (const std::string& key : keys) EXPECT_EQ(store_.Get(key), value);
  }
  EXPECT_EQ(store_.Violation(), "");
}

// A version in flight stops the mark of its segment. The puts after it share their fences, too.
TEST_F(TogetherTest, PutsShareFencesBesideAStuckPutAndAChunk) {
  const auto fences_per_put = [](const std::function<void(Store&)>& before) {
    StoreOptions options = Options();
    options.wish.region_size = 1 << 20;
    options.wish.segment_size = 1 << 18;
    options.wish.pool_size = 9 << 20;
    Store store(options);
    std::vector<std::string> keys(320);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = "key" + std::to_string(i);
    for (const std::string& key : keys) store.Inline(key, std::string(100, 'o'));
    before(store);
    for (const std::string& key : keys) store.Inline(key, std::string(200, 'b'));
    const uint64_t first = FencesOf(store);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % 16 == 0) store.PutTogether();
      store.Inline(keys[i], std::string(200, 'n'));
      if (i % 16 == 15) store.PublishTogether();
    }
    return static_cast<double>(FencesOf(store) - first) / static_cast<double>(keys.size());
  };
  EXPECT_LT(fences_per_put([](Store&) {}), 1);  // the mark moves on
  EXPECT_LT(fences_per_put([](Store& store) { store.Reserve("stuck", "never", 1); }), 0.2);
  EXPECT_LT(fences_per_put([](Store& store) { EXPECT_TRUE(store.Delegated("other", "value", 1)); }), 0.2);
}

TEST_F(TogetherTest, EachPathSharesTheFences) {
  const auto keys = FarKeys(3);
  for (const std::string& key : keys) store_.Inline(key, "old");
  ASSERT_TRUE(store_.Delegated(keys[0], "old", 1));  // the session has a chunk now
  const uint64_t before = Fences();
  store_.PutTogether();
  store_.Inline(keys[0], "inline");
  const Reserved reserved = store_.Reserve(keys[1], "reserved", 2);
  EXPECT_TRUE(store_.Delegated(keys[2], "delegated", 1));
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  store_.PublishTogether();
  EXPECT_EQ(Fences(), before + 2);
  EXPECT_EQ(store_.versions().in_flight(), 1U);
  EXPECT_TRUE(store_.Finish(reserved));
  EXPECT_EQ(store_.Get(keys[0]), "inline");
  EXPECT_EQ(store_.Get(keys[1]), "reserved");
  EXPECT_EQ(store_.Get(keys[2]), "delegated");
}

TEST_F(TogetherTest, PutsAreInvisibleBeforeTheBatchIsPublished) {
  store_.Inline("k", "old");
  store_.PutTogether();
  store_.Inline("k", "new");
  store_.Inline("other", "new");
  EXPECT_EQ(store_.Get("k"), "old");
  EXPECT_EQ(store_.Get("other"), kAbsent);
  store_.PublishTogether();
  EXPECT_EQ(store_.Get("k"), "new");
  EXPECT_EQ(store_.Get("other"), "new");
}

TEST_F(TogetherTest, PutsOfOneKeyTakeEffectInOrder) {
  store_.PutTogether();
  store_.Inline("k", "first");
  const Outcome second = store_.Inline("k", "second");
  EXPECT_EQ(store_.Get("k"), "first");
  const Outcome third = store_.Inline("k", "third");
  store_.PublishTogether();
  EXPECT_EQ(store_.Get("k"), "third");
  EXPECT_EQ(store_.WordOf("k").new_address(), third.address);
  EXPECT_EQ(store_.WordOf("k").old_address(), second.address);
  EXPECT_EQ(third.header.previous, second.address.raw());
  EXPECT_EQ(store_.Keys(), 1U);
  EXPECT_EQ(store_.Violation(), "");
}

TEST_F(TogetherTest, NewKeysOfOneNeighbourhoodTakeASlotEach) {
  const auto keys = NearKeys(40);
  store_.PutTogether();
  for (const std::string& key : keys) EXPECT_EQ(store_.Inline(key, "of " + key).code, Code::kOk);
  store_.PublishTogether();
  for (const std::string& key : keys) EXPECT_EQ(store_.Get(key), "of " + key);
  EXPECT_EQ(store_.Keys(), keys.size());
  EXPECT_EQ(store_.Violation(), "");
}

// The shard moves entries to make room for a key, also entries that the batch is about to change.
TEST_F(TogetherTest, EntryMayMoveDuringItsPut) {
  StoreOptions options = Options();
  options.wish.region_size = 1 << 18;  // so that marks publish few of the puts
  options.wish.segment_size = 1 << 16;
  options.wish.pool_size = 8 << 18;
  Store store(options);
  const auto keys = NearKeys(200);  // more than the slots they can have
  std::map<std::string, std::string> values;
  const auto put = [&](const std::string& key, const std::string& value) {
    if (store.Inline(key, value).code == Code::kOk) values[key] = value;
  };
  Random random(1);
  for (size_t i = 0; i < keys.size(); ++i) {
    store.PutTogether();
    const size_t first = random.Uniform(i + 1);
    for (size_t n = 0; n < std::min<size_t>(i, 25); ++n) {
      const std::string& other = keys[(first + n) % i];
      if (values.contains(other)) put(other, "before " + keys[i]);
    }
    put(keys[i], "new");
    store.PublishTogether();
  }
  EXPECT_GT(store.displacements(), 0U);
  for (const auto& [key, value] : values) EXPECT_EQ(store.Get(key), value) << key;
  EXPECT_EQ(store.Keys(), values.size());
  EXPECT_EQ(store.Violation(), "");
}

// A request whose answer could show an earlier put comes after that put, also in a batch.
TEST_F(TogetherTest, AnyOtherRequestPublishesTheBatch) {
  Versions& versions = store_.versions();
  int number = 0;
  const auto expect_published = [&](const char* what, const std::function<void()>& ask) {
    const std::string value = "value " + std::to_string(++number);
    store_.PutTogether();
    store_.Inline("k", value);
    EXPECT_NE(store_.Get("k"), value);
    ask();
    EXPECT_EQ(store_.Get("k"), value) << what;
    store_.PublishTogether();
  };
  store_.Inline("other", "value");
  const uint32_t head = store_.geometry().HeadOf(HashKey("k"));
  ASSERT_TRUE(store_.Delegated("other", "value", 1));
  const Outcome chunk = versions.delegating().Delegate(head, 256, 256, 2);
  ASSERT_EQ(chunk.code, Code::kOk);

  expect_published("delete", [&] { EXPECT_EQ(store_.Delete("other"), Code::kOk); });
  expect_published("report", [&] { store_.Report("other"); });
  expect_published("sweep", [&] { store_.Sweep(); });
  expect_published("delegate", [&] { (void)versions.delegating().Delegate(head, 64, 64, 3); });
  expect_published("give back", [&] { versions.delegating().GiveBack(head, chunk.address, chunk.header.version, 2); });
  expect_published("a while", [&] { versions.delegating().Age(); });
  expect_published("revoking chunks", [&] { versions.delegating().RevokeFull(); });
  expect_published("the end of a session", [&] { store_.EndSession(7); });
  const Reserved older = store_.Reserve("k", "older", 4);
  expect_published("a commit of the key", [&] { EXPECT_EQ(store_.Commit(older), Code::kCorruption); });
}

TEST_F(TogetherTest, CommitsShareAFence) {
  std::vector<Reserved> reserved;
  for (const std::string& key : FarKeys(6)) {
    reserved.push_back(store_.Reserve(key, "value of " + key));
    store_.Land(reserved.back());
  }
  const uint64_t before = Fences();
  std::vector<Versions::Commit> begun;
  begun.reserve(reserved.size());
  for (const Reserved& one : reserved) begun.push_back(store_.BeginCommit(one));
  EXPECT_EQ(Fences(), before);
  for (const Reserved& one : reserved) EXPECT_FALSE(store_.WordOf(one.key).settled()) << "it is not persistent yet";
  for (const Versions::Commit& one : begun) EXPECT_EQ(store_.EndCommit(one), Code::kOk);
  EXPECT_EQ(Fences(), before + 1);
  for (const Reserved& one : reserved) EXPECT_EQ(store_.GetAfterCrash(one.key), one.value);
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

TEST_F(TogetherTest, CommitSharesTheFencesOfPuts) {
  const auto keys = FarKeys(3);
  const Reserved first = store_.Reserve(keys[0], "committed");
  store_.Land(first);
  store_.Inline(keys[1], "old");
  const uint64_t before = Fences();
  store_.PutTogether();
  store_.Inline(keys[1], "new");
  const auto commit = store_.BeginCommit(first);
  store_.Inline(keys[2], "new");
  store_.PublishTogether();
  EXPECT_EQ(Fences(), before + 2);
  EXPECT_EQ(store_.EndCommit(commit), Code::kOk);
  EXPECT_EQ(Fences(), before + 2);
  for (const std::string& key : {keys[1], keys[2]}) EXPECT_EQ(store_.Get(key), "new");
  EXPECT_EQ(store_.Get(keys[0]), "committed");
}

TEST_F(TogetherTest, ArrivedPutsWithoutACommitShareAFence) {
  std::vector<Reserved> reserved;
  for (const std::string& key : FarKeys(6)) {
    reserved.push_back(store_.Reserve(key, "value", 0, Ack::kPlaced));
    store_.Land(reserved.back());
  }
  const uint64_t before = Fences();
  EXPECT_EQ(store_.Sweep(), reserved.size());
  EXPECT_EQ(Fences(), before + 1);
  EXPECT_EQ(store_.Sweep(), 0U);
  EXPECT_EQ(Fences(), before + 1) << "nothing was flushed";
}

// Requests between the two steps of a commit may settle its version, supersede it, or end its session.
TEST_F(TogetherTest, RequestsMayComeBetweenTheStepsOfACommit) {
  const auto begin = [&](const std::string& key) {
    const Reserved reserved = store_.Reserve(key, "reserved");
    store_.Land(reserved);
    return store_.BeginCommit(reserved);
  };
  auto commit = begin("put");
  store_.Inline("put", "newer");
  EXPECT_EQ(store_.EndCommit(commit), Code::kOk) << "the put settled it, and went past it";
  EXPECT_EQ(store_.Get("put"), "newer");

  commit = begin("reserved anew");
  const Reserved newer = store_.Reserve("reserved anew", "newer");
  EXPECT_EQ(store_.EndCommit(commit), Code::kOk);
  EXPECT_EQ(store_.Get("reserved anew"), "reserved");
  EXPECT_TRUE(store_.Finish(newer));
  EXPECT_EQ(store_.Get("reserved anew"), "newer");

  commit = begin("deleted");
  EXPECT_EQ(store_.Delete("deleted"), Code::kOk);
  EXPECT_EQ(store_.EndCommit(commit), Code::kOk) << "its put took effect just before the delete";
  EXPECT_EQ(store_.Get("deleted"), kAbsent);

  commit = begin("put together");
  store_.PutTogether();
  store_.Inline("put together", "newer");
  EXPECT_EQ(store_.EndCommit(commit), Code::kOk);
  EXPECT_EQ(store_.Get("put together"), "newer") << "it was published first";
  store_.PublishTogether();

  commit = begin("session");
  store_.EndSession(0);
  EXPECT_EQ(store_.EndCommit(commit), std::nullopt);
  EXPECT_EQ(store_.Get("session"), "reserved") << "what arrived whole was settled";
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

TEST_F(TogetherTest, ClosePublishesTheBatch) {
  store_.Inline("k", "old");
  store_.PutTogether();
  store_.Inline("k", "new");
  store_.CloseAndReopen();
  EXPECT_EQ(store_.Get("k"), "new");
}

TEST_F(TogetherTest, EndOfASessionTakesBackItsReservations) {
  store_.Inline("k", "old");
  store_.PutTogether();
  store_.Reserve("k", "never", 1);
  store_.EndSession(1);
  store_.PublishTogether();
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  EXPECT_EQ(store_.Get("k"), "old");
  EXPECT_TRUE(store_.WordOf("k").settled());
}

TEST_F(TogetherTest, SessionAtItsLimitSettlesArrivedPutsAndPublishesTheBatch) {
  StoreOptions options = Options();
  options.reservations_per_session = 2;
  Store store(options);
  const Reserved a = store.Reserve("a", "value", 1, Ack::kPlaced);
  const Reserved b = store.Reserve("b", "value", 1, Ack::kPlaced);
  store.Land(a);
  store.Land(b);
  store.PutTogether();
  store.Inline("k", "new");
  EXPECT_EQ(store.Reserve("c", "value", 1, Ack::kPlaced).code(), Code::kOk);
  EXPECT_EQ(store.Get("k"), "new");  // the others were settled, and that comes after the batch
  store.PublishTogether();
  EXPECT_EQ(store.versions().in_flight(), 1U);
}

TEST_F(TogetherTest, RefusedPutStillSettlesArrivedVersions) {
  StoreOptions options = Options();
  options.reservations_per_session = 8;
  Store store(options);
  std::vector<Reserved> arrived(8);
  for (size_t i = 0; i < arrived.size(); ++i)
    arrived[i] = store.Reserve("a" + std::to_string(i), "value", 1, Ack::kPlaced);
  for (int i = 0; i < 8; ++i) store.Reserve("b" + std::to_string(i), "value", 2, Ack::kPersisted);
  for (const Reserved& reserved : arrived) store.Land(reserved);
  EXPECT_EQ(store.versions().in_flight(), 16U);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(store.Reserve("c", "value", 2).code(), Code::kResourceExhausted);
  EXPECT_EQ(store.versions().in_flight(), 8U);
  const uint64_t fences = FencesOf(store);
  EXPECT_EQ(store.Reserve("c", "value", 2).code(), Code::kResourceExhausted);
  EXPECT_EQ(FencesOf(store), fences) << "there was nothing to publish";
}

// (I9) When the shard opens the next segment, it marks the full one as settled.
TEST_F(TogetherTest, FullSegmentHasNoUnpublishedPuts) {
  store_.Inline("first", "old");
  store_.PutTogether();
  store_.Inline("first", "new");
  const uint64_t used = store_.LogBytesUsed();
  const auto keys = FarKeys(6);
  for (size_t i = 0; store_.LogBytesUsed() / 4096 == used / 4096; ++i) store_.Inline(keys.at(i), std::string(900, 'v'));
  EXPECT_EQ(store_.Get("first"), "new");
  store_.PublishTogether();
}

// (I8, I9) A put into a later chunk says that the client is done with the first chunk. The shard publishes the puts of
// the first chunk before that.
TEST_F(TogetherTest, ChunkEndsAfterItsPuts) {
  const auto put = [&](const Outcome& chunk, std::string_view key, std::string_view value) {
    const uint64_t at = chunk.address.offset_in_slot() + format::kChunkObjectsAt;
    const auto address = format::LogAddress::At(chunk.address.slot(), at);
    const uint64_t offset = store_.geometry().RegionOffset(store_.Published(0, address.slot()).region()) + at +
                            format::ValueOffset(key.size());
    std::ranges::copy(AsBytes(value), store_.pool().view().bytes.begin() + static_cast<ptrdiff_t>(offset));
    const auto outcome = store_.versions().delegating().Put(key, HashKey(key), static_cast<uint32_t>(value.size()),
                                                            Crc32c(0, AsBytes(value)), Ack::kPersisted, address, 1);
    return outcome && outcome->code == Code::kOk;
  };
  const Outcome first = store_.versions().delegating().Delegate(0, 256, 256, 1);
  const Outcome second = store_.versions().delegating().Delegate(0, 256, 256, 1);
  ASSERT_TRUE(first.code == Code::kOk && second.code == Code::kOk);
  EXPECT_TRUE(put(first, "a", "value"));
  EXPECT_EQ(store_.Get("a"), kAbsent);
  EXPECT_TRUE(put(second, "b", "value"));
  EXPECT_EQ(store_.Get("a"), "value");
  (void)store_.versions().PublishPuts();
  EXPECT_EQ(store_.Get("b"), "value");
}

TEST_F(TogetherTest, LargeBatchSharesFewFences) {
  const auto keys = NearKeys(50);
  for (const std::string& key : keys) store_.Inline(key, "old");
  const uint64_t before = Fences();
  store_.PutTogether();
  for (const std::string& key : keys) store_.Inline(key, "new");
  store_.PublishTogether();
  EXPECT_LE(Fences(), before + 16);  // for 100 puts, with some fences for the marks
  for (const std::string& key : keys) EXPECT_EQ(store_.Get(key), "new");
}

// Two neighbourhoods have one slot in common, which is the only free one of the first.
TEST_F(TogetherTest, LastSlotOfANeighbourhoodIsTakenOnce) {
  const auto keys_at = [&](uint64_t home, size_t count) {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      std::string key = "at" + std::to_string(i);
      if (format::FirstHome(store_.geometry(), HashKey(key)) == home) keys.push_back(std::move(key));
    }
    return keys;
  };
  constexpr uint64_t kLast = format::kNeighbourhood - 1;
  const auto crowd = keys_at(0, format::kNeighbourhood);
  const std::string next = keys_at(kLast, 1)[0];
  for (size_t i = 0; i < kLast; ++i) ASSERT_EQ(store_.Inline(crowd[i], "value").code, Code::kOk);
  store_.PutTogether();
  EXPECT_EQ(store_.Inline(crowd[kLast], "of the crowd").code, Code::kOk);
  EXPECT_EQ(store_.Inline(next, "of the next").code, Code::kOk);
  store_.PublishTogether();
  EXPECT_EQ(store_.Get(crowd[kLast]), "of the crowd");
  EXPECT_EQ(store_.Get(next), "of the next");
  EXPECT_EQ(store_.Keys(), format::kNeighbourhood + 1U);
  EXPECT_EQ(store_.Violation(), "");
}

TEST_F(TogetherTest, LookForArrivedPutsTakesNoFenceWithoutArrivals) {
  StoreOptions options = Options();
  options.reservations_per_session = 2;
  Store store(options);
  store.Reserve("a", "value", 1);
  store.Reserve("b", "value", 1);
  store.Inline("d", "value");  // its settled bit waits for the next fence
  const uint64_t before = FencesOf(store);
  EXPECT_EQ(store.Reserve("c", "value", 1).outcome.reason, format::Reason::kTooManyReservations);
  EXPECT_EQ(FencesOf(store), before);
}

}  // namespace
}  // namespace erda::server
