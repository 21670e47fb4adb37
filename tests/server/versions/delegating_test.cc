// Chunks of the log that clients fill, and the puts in them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/crc32c.h"
#include "base/test_hash.h"
#include "server/crash_pool.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::Counter;
using format::kChunkObjectsAt;
using format::LogAddress;
using format::Reason;

LogAddress Behind(LogAddress address, uint64_t bytes) {
  return LogAddress::At(address.slot(), address.offset_in_slot() + bytes);
}

class DelegatingTest : public testing::Test {
 protected:
  explicit DelegatingTest(const StoreOptions& options = {}) : store_(options) {}
  // Writes a value as the client does, for an object at this place.
  void Place(LogAddress object, std::string_view key, std::string_view value) {
    const uint64_t at = store_.geometry().RegionOffset(store_.Published(0, object.slot()).region()) +
                        object.offset_in_slot() + format::ValueOffset(key.size());
    std::ranges::copy(AsBytes(value), store_.pool().view().bytes.begin() + static_cast<ptrdiff_t>(at));
  }
  std::optional<Outcome> Put(LogAddress object, std::string_view key, std::string_view value, SessionId session = 0) {
    const auto outcome =
        store_.versions().delegating().Put(key, HashKey(key), static_cast<uint32_t>(value.size()),
                                           Crc32c(0, AsBytes(value)), Ack::kPersisted, object, session);
    (void)store_.versions().PublishPuts();
    return outcome;
  }
  Outcome Chunk(uint64_t bytes = 512, SessionId session = 0) {
    return store_.versions().delegating().Delegate(0, 64, bytes, session);
  }
  // Cleans every region that gives a gain.
  void CleanAll() {
    store_.cleaning().Ask();
    store_.Clean();
  }
  // Changes the key's entry as a power cut may: it loses the settled bit.
  void LoseSettledBit(std::string_view key) {
    const index::Index& index = store_.versions().index();
    const auto slot = index.Find(HashKey(key), [](index::Slot, const format::IndexEntry&) { return true; });
    ASSERT_TRUE(slot);
    const uint64_t word = index.WordAt(*slot).Unsettled().raw();
    std::ranges::copy(BytesOf(word), store_.pool().view().bytes.begin() +
                                         static_cast<ptrdiff_t>(store_.geometry().FirstSlotOffset(0, *slot)));
  }
  uint64_t Gauge(Counter counter) {
    store_.versions().PublishGauges(store_.versions().PublishPuts());
    return store_.counter(counter);
  }
  Store store_;
};

TEST_F(DelegatingTest, APutIsSettledWhenItIsAnswered) {
  for (const char* value : {"v1", "v2", ""}) {
    const auto outcome = store_.Delegated("k", value);
    ASSERT_TRUE(outcome && outcome->code == Code::kOk);
    EXPECT_TRUE(store_.WordOf("k").settled());
    EXPECT_EQ(store_.WordOf("k").new_address(), outcome->address);
    EXPECT_EQ(store_.Get("k"), value);
    EXPECT_EQ(store_.GetAfterCrash("k"), value);
  }
  EXPECT_EQ(store_.counter(Counter::kPutsDelegated), 3U);
  EXPECT_EQ(store_.versions().in_flight(), 0U);
  EXPECT_EQ(Gauge(Counter::kChunks), 1U);
}

TEST_F(DelegatingTest, DelegatedObjectIsWholeInItsPlace) {
  const std::string value(300, 'x');
  const auto outcome = store_.Delegated("key", value);
  const auto view = store_.versions().log().Inspect(0, outcome->address);
  EXPECT_EQ(view.state, format::ObjectState::kWhole);
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(AsString(view.value), value);
}

TEST_F(DelegatingTest, ObjectsFollowEachOtherAndOtherPutsFollowTheChunk) {
  const Outcome chunk = Chunk();
  EXPECT_EQ(SpaceOf(chunk.header), 512U);
  LogAddress at = Behind(chunk.address, kChunkObjectsAt);
  for (const char* key : {"a", "b", "c"}) {
    Place(at, key, "value");
    ASSERT_EQ(Put(at, key, "value")->code, Code::kOk);
    at = Behind(at, format::ObjectSpace(1, 5));
  }
  EXPECT_EQ(store_.Inline("d", "value").address, Behind(chunk.address, 512));
  for (const char* key : {"a", "b", "c", "d"}) EXPECT_EQ(store_.Get(key), "value");
}

TEST_F(DelegatingTest, PutOfAMissingOrMisplacedObjectIsABreach) {
  const Outcome chunk = Chunk();
  const LogAddress first = Behind(chunk.address, kChunkObjectsAt);
  EXPECT_FALSE(Put(first, "k", "value")) << "nothing was placed";
  Place(first, "k", "valuE");
  EXPECT_FALSE(Put(first, "k", "value")) << "something else was placed";
  Place(Behind(first, 16), "k", "value");
  EXPECT_FALSE(Put(Behind(first, 16), "k", "value")) << "not where the next one begins";
  EXPECT_FALSE(Put(chunk.address, "k", "value")) << "where the chunk's header is";
  const std::string large(512, 'x');
  EXPECT_FALSE(Put(first, "k", large)) << "longer than the chunk";
  EXPECT_EQ(store_.Get("k"), kAbsent);
  EXPECT_EQ(store_.Keys(), 0U);
}

TEST_F(DelegatingTest, ChunkOfAnotherSessionIsRefused) {
  const Outcome chunk = Chunk();
  const LogAddress first = Behind(chunk.address, kChunkObjectsAt);
  Place(first, "k", "value");
  EXPECT_EQ(Put(first, "k", "value", 1)->reason, Reason::kNoChunk);
  (void)Chunk(512, 1);
  EXPECT_EQ(Put(first, "k", "value", 1)->reason, Reason::kNoChunk);
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.versions().delegating().GiveBack(0, chunk.address, chunk.header.version, 1);
  EXPECT_EQ(Put(first, "k", "value")->code, Code::kOk) << "it was not the other one's to give back";
}

TEST_F(DelegatingTest, ChunksStayWithinTheLimitsOfSessionAndLog) {
  for (uint32_t i = 0; i < format::kChunksPerClient; ++i) ASSERT_EQ(Chunk(128).code, Code::kOk);
  EXPECT_EQ(Chunk(128).reason, Reason::kNoChunk);
  uint32_t others = 0;
  while (Chunk(1024, 1 + others / 4).code == Code::kOk) ++others;
  EXPECT_LE(Gauge(Counter::kChunkBytes), store_.versions().log().regions().bytes_total() / 16);
  EXPECT_GE(others, 5U);
  for (SessionId session = 0; session <= 1 + others / 4; ++session) store_.EndSession(session);
  EXPECT_EQ(Gauge(Counter::kChunks), 0U);
  EXPECT_EQ(Gauge(Counter::kChunkBytes), 0U);
  EXPECT_EQ(Chunk(128).code, Code::kOk);
}

TEST_F(DelegatingTest, ChunkSizeIsLimited) {
  EXPECT_EQ(SpaceOf(Chunk(1 << 20).header), 1024U);
  EXPECT_EQ(store_.versions().delegating().Delegate(0, 1025, 4096, 0).reason, Reason::kNoChunk);
  EXPECT_EQ(store_.versions().delegating().Delegate(0, 0, 0, 0).reason, Reason::kNoChunk);
  EXPECT_EQ(store_.versions().delegating().Delegate(0, UINT64_MAX, UINT32_MAX, 0).reason, Reason::kNoChunk);
}

TEST_F(DelegatingTest, TheNextChunkEndsTheOneBefore) {
  const Outcome first = Chunk();
  const Outcome second = Chunk();
  const LogAddress in_first = Behind(first.address, kChunkObjectsAt);
  const LogAddress in_second = Behind(second.address, kChunkObjectsAt);
  Place(in_first, "k", "v1");
  ASSERT_EQ(Put(in_first, "k", "v1")->code, Code::kOk);
  EXPECT_EQ(Gauge(Counter::kChunks), 2U);
  Place(in_second, "k", "v2");
  ASSERT_EQ(Put(in_second, "k", "v2")->code, Code::kOk);
  EXPECT_EQ(Gauge(Counter::kChunks), 1U);
  const LogAddress next = Behind(in_first, format::ObjectSpace(1, 2));
  Place(next, "k", "v3");
  EXPECT_EQ(Put(next, "k", "v3")->reason, Reason::kNoChunk);
  EXPECT_EQ(store_.Get("k"), "v2");
}

// A refused put ends the chunk before, too. Its client is done with the older chunk by its request.
TEST_F(DelegatingTest, ARefusedPutEndsTheChunkBefore) {
  (void)Chunk();
  const Outcome second = Chunk();
  for (int i = 0; i < 9; ++i) store_.versions().delegating().Age();
  EXPECT_EQ(Gauge(Counter::kChunks), 2U);
  const LogAddress at = Behind(second.address, kChunkObjectsAt);
  Place(at, "k", "value");
  EXPECT_EQ(Put(at, "k", "value")->reason, Reason::kNoChunk);
  EXPECT_EQ(Gauge(Counter::kChunks), 1U);
  store_.versions().delegating().GiveBack(0, second.address, second.header.version, 0);
  EXPECT_EQ(Gauge(Counter::kChunks), 0U);
}

// The address of the chunk may now belong to another chunk, since its region has another use.
TEST_F(DelegatingTest, GivingBackAnotherVersionKeepsTheChunk) {
  const Outcome chunk = Chunk();
  store_.versions().delegating().GiveBack(0, chunk.address, chunk.header.version + 1, 0);
  EXPECT_EQ(Gauge(Counter::kChunks), 1U);
}

TEST_F(DelegatingTest, UnusedChunkIsRevoked) {
  const auto revoked = [&] {
    std::vector<LogAddress> addresses;
    store_.versions().chunks().TellRevoked([&](SessionId session, LogAddress address) {
      EXPECT_EQ(session, 3U);
      addresses.push_back(address);
    });
    return addresses;
  };
  const Outcome chunk = Chunk(512, 3);
  LogAddress at = Behind(chunk.address, kChunkObjectsAt);
  for (int i = 0; i < 8; ++i) store_.versions().delegating().Age();
  EXPECT_TRUE(revoked().empty());
  Place(at, "k", "v1");
  ASSERT_EQ(Put(at, "k", "v1", 3)->code, Code::kOk);
  for (int i = 0; i < 8; ++i) store_.versions().delegating().Age();
  EXPECT_TRUE(revoked().empty()) << "it was used meanwhile";
  EXPECT_TRUE(store_.versions().chunks().delegates());
  store_.versions().delegating().Age();
  EXPECT_EQ(revoked(), std::vector{chunk.address});
  EXPECT_FALSE(store_.versions().chunks().delegates());
  at = Behind(at, format::ObjectSpace(1, 2));
  Place(at, "k", "v2");
  EXPECT_EQ(Put(at, "k", "v2", 3)->reason, Reason::kNoChunk);
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(Gauge(Counter::kChunks), 1U) << "its client may still write there";
  store_.versions().delegating().GiveBack(0, chunk.address, chunk.header.version, 3);
  EXPECT_EQ(Gauge(Counter::kChunks), 0U);
}

// (I8) The region gets no other use before the client has given the chunk back.
TEST_F(DelegatingTest, RegionIsNotReusedWhileAClientMayWriteThere) {
  const Outcome chunk = Chunk();
  const format::HeadSlot published = store_.Published(0, chunk.address.slot());
  const std::string value(900, 'x');
  for (int i = 0; i < 400; ++i) ASSERT_EQ(store_.Put("k" + std::to_string(i % 3), value).code, Code::kOk);
  CleanAll();
  EXPECT_EQ(store_.Published(0, chunk.address.slot()), published);
  EXPECT_FALSE(store_.versions().chunks().delegates()) << "it was revoked when its region was wanted";
  store_.GiveBack();
  store_.versions().delegating().GiveBack(0, chunk.address, chunk.header.version, 0);
  CleanAll();
  EXPECT_NE(store_.Published(0, chunk.address.slot()), published);
}

// A put waits for room, and a session does not give back the chunk that was revoked. In the end the server ends the
// session.
TEST_F(DelegatingTest, SessionThatKeepsARevokedChunkFromAWaitingPutIsOverdue) {
  constexpr Nanoseconds kTenth = std::chrono::milliseconds(100);
  std::vector<SessionId> overdue;
  const auto end_overdue = [&] {
    store_.versions().chunks().EndOverdue([&](SessionId session) { overdue.push_back(session); });
  };
  const auto wait = [&](int tenths) {
    for (int i = 0; i < tenths; ++i) store_.versions().chunks().Await(kTenth);
    end_overdue();
  };
  const Outcome chunk = Chunk(512, 3);
  (void)Chunk(512, 4);
  wait(100);
  EXPECT_TRUE(overdue.empty()) << "nothing was revoked";
  for (int i = 0; i < 9; ++i) store_.versions().delegating().Age();
  EXPECT_TRUE(store_.versions().chunks().IsAwaiting());
  wait(9);
  store_.versions().chunks().BeginAwaiting();
  wait(9);
  EXPECT_TRUE(overdue.empty()) << "no put has waited for so long";
  store_.versions().delegating().GiveBack(0, chunk.address, chunk.header.version, 3);
  wait(1);
  EXPECT_EQ(overdue, std::vector{SessionId{4}}) << "the other one gave it back";
  EXPECT_FALSE(store_.versions().chunks().IsAwaiting()) << "who is overdue is not waited for";
  store_.versions().chunks().BeginAwaiting();
  wait(100);
  EXPECT_EQ(overdue.size(), 1U) << "once";
}

// A client that takes no answers keeps its channel from closing a window.
TEST_F(DelegatingTest, ASessionWhoseWindowDoesNotCloseIsOverdue) {
  Versions& versions = store_.versions();
  const auto windowed = [&] { return versions.delegating().Delegate(0, 64, 128, 3, true); };
  uint32_t chunks = 0;
  for (Outcome chunk = windowed(); chunk.code == Code::kOk; chunk = windowed()) {
    versions.delegating().GiveBack(0, chunk.address, chunk.header.version, 3);
    ASSERT_LE(++chunks, format::kChunksPerClient) << "more than one client may have, all of them being closed";
  }
  EXPECT_EQ(Gauge(Counter::kChunks), chunks);
  EXPECT_GT(chunks, 0U);
  EXPECT_TRUE(versions.chunks().IsAwaiting());
  std::vector<SessionId> overdue;
  const auto end_overdue = [&] {
    versions.chunks().EndOverdue([&](SessionId session) { overdue.push_back(session); });
  };
  versions.chunks().Await(std::chrono::milliseconds(900));
  versions.chunks().BeginAwaiting();
  versions.chunks().Await(std::chrono::milliseconds(900));
  end_overdue();
  EXPECT_TRUE(overdue.empty()) << "no put has waited for so long";
  versions.chunks().Await(std::chrono::milliseconds(100));
  end_overdue();
  ASSERT_FALSE(overdue.empty());
  EXPECT_EQ(std::ranges::count(overdue, SessionId{3}), std::ssize(overdue));
  EXPECT_FALSE(versions.chunks().IsAwaiting());
  versions.EndSession(3);
  EXPECT_EQ(Gauge(Counter::kChunks), 0U);
}

TEST_F(DelegatingTest, EndedSessionIsNotEndedAsOverdue) {
  (void)Chunk(512, 3);
  for (int i = 0; i < 9; ++i) store_.versions().delegating().Age();
  store_.versions().chunks().Await(std::chrono::seconds(1));
  store_.EndSession(3);
  store_.versions().chunks().EndOverdue([](SessionId session) { ADD_FAILURE() << session << " has left"; });
}

// The index has no room for the put, and no region to grow. The refused put leaves an object that no entry names, and
// the next object follows it. On another path the put may wait for a region.
TEST_F(DelegatingTest, RefusedPutLeavesNoGapInTheChunk) {
  const Outcome chunk = Chunk();
  ASSERT_EQ(chunk.code, Code::kOk);
  while (store_.versions().log().regions().free_regions() > 1) {
    ASSERT_EQ(store_.Inline("large", std::string(3000, 'x')).code, Code::kOk);
  }
  std::vector<std::string> keys;
  while (keys.size() < 200) {
    const std::string key = "key" + std::to_string(keys.size());
    if (store_.Inline(key, "v").code != Code::kOk) break;
    keys.push_back(key);
  }
  ASSERT_GT(keys.size(), 100U);
  ASSERT_LT(keys.size(), 128U);
  ASSERT_EQ(store_.versions().index().size(), 128U);
  const std::string refused = "key" + std::to_string(keys.size());
  const LogAddress first = Behind(chunk.address, kChunkObjectsAt);
  Place(first, refused, "value");
  const auto outcome = Put(first, refused, "value");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->reason, Reason::kNoChunk);
  const LogAddress second = Behind(first, format::ObjectSpace(refused.size(), 5));
  Place(second, keys.front(), "value");
  ASSERT_EQ(Put(second, keys.front(), "value")->code, Code::kOk);
  EXPECT_EQ(store_.Get(keys.front()), "value");
  EXPECT_EQ(store_.GetAfterCrash(keys.front()), "value");
  EXPECT_EQ(store_.Get(refused), kAbsent);
}

TEST_F(DelegatingTest, ObjectsInChunksSurviveACloseAndAreMoved) {
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(store_.Delegated("key" + std::to_string(i), "value" + std::to_string(i)));
  }
  store_.CloseAndReopen();
  const std::string value(900, 'x');
  for (int i = 0; i < 40; ++i) ASSERT_EQ(store_.Put("k" + std::to_string(i % 3), value).code, Code::kOk);
  CleanAll();
  EXPECT_GE(store_.counter(Counter::kCleanMoves), 12U);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(store_.Get("key" + std::to_string(i)), "value" + std::to_string(i));
}

// The mark waits for a chunk: an object that is published in it may be unsettled at a crash.
TEST_F(DelegatingTest, RecoveryFindsTheObjectsOfAChunk) {
  ASSERT_TRUE(store_.Delegated("k", "v1"));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(store_.Inline("other", std::string(100, 'x')).code, Code::kOk);
  ASSERT_TRUE(store_.LandDelegated("k", "never published"));
  store_.Recover();
  EXPECT_EQ(store_.Get("k"), "v1");
  EXPECT_EQ(store_.recovery().index_slots, 0U) << "a plain walk";
  EXPECT_GE(store_.recovery().objects, 2U);
  EXPECT_EQ(store_.Violation(), "");
  ASSERT_TRUE(store_.Delegated("k", "v2"));
  EXPECT_EQ(store_.Get("k"), "v2");
}

// A header in a chunk is missing or damaged. If the client had no window, recovery looks through the index for the
// objects there.
TEST_F(DelegatingTest, DamagedHeaderInAChunkWithoutAWindowCausesAnIndexWalk) {
  const auto first = store_.Delegated("a", "value");
  ASSERT_TRUE(store_.Delegated("b", "value"));
  LoseSettledBit("a");
  LoseSettledBit("b");
  store_.pool().view().bytes[store_.versions().log().OffsetOf(0, first->address) + 5] ^= std::byte{1};
  store_.Recover();
  EXPECT_GT(store_.recovery().index_slots, 0U) << "it was looked through";
  EXPECT_EQ(store_.recovery().settled, 1U);
  EXPECT_EQ(store_.recovery().damaged, 1U);
  EXPECT_EQ(store_.Get("b"), "value");
  EXPECT_EQ(store_.Get("a"), kDamaged);
}

// --- Forged bytes of a client with a window, in its chunk

class ForgedTest : public DelegatingTest {
 protected:
  // In a large index, entries are far apart. So recovery finds none of them by chance.
  static StoreOptions LargeIndex() {
    StoreOptions options;
    options.wish = {98304 + 36864 + 8 * 16384, 1, 16384, 4096, 2048};
    return options;
  }
  ForgedTest() : DelegatingTest(LargeIndex()) { chunk_ = store_.versions().delegating().Delegate(0, 64, 512, 0, true); }

  [[nodiscard]] LogAddress InChunk(uint64_t at) const { return Behind(chunk_.address, at); }
  [[nodiscard]] std::byte* BytesAt(LogAddress address) {
    return store_.pool().view().bytes.data() + store_.versions().log().OffsetOf(0, address);
  }
  // Returns the bytes from the address to the end of the segment.
  [[nodiscard]] uint64_t RoomBehind(LogAddress address) const {
    return store_.geometry().segment_size - address.offset_in_slot() % store_.geometry().segment_size;
  }
  // Writes a header that verifies, of an object that takes `space` bytes, and its checksum, so that the object is
  // whole.
  void Forge(LogAddress at, std::string_view key, uint64_t space, uint64_t version = UINT64_MAX / 2,
             format::ObjectKind kind = format::ObjectKind::kValue) {
    format::ObjectHeader header{};
    const bool is_chunk = kind == format::ObjectKind::kChunk;
    header.key_size = is_chunk ? 0 : static_cast<uint16_t>(key.size());
    header.kind = static_cast<uint8_t>(kind);
    header.value_size = static_cast<uint32_t>(space - format::ValueOffset(header.key_size));
    header.version = version;
    header.key_hash = HashKey(key);
    header.header_crc = format::HeaderCrc(store_.versions().log().PlaceOf(0, at), header, is_chunk ? "" : key);
    std::byte* to = BytesAt(at);
    std::memcpy(to, &header, sizeof(header));
    if (!is_chunk) std::memcpy(to + format::kLabelOffset, key.data(), key.size());
    const auto value = std::span<const std::byte>(to + format::ValueOffset(header.key_size), header.value_size);
    const uint32_t checksum = format::ObjectChecksum(header, value);
    std::memcpy(to + format::ChecksumOffset(header.key_size), &checksum, sizeof(checksum));
  }
  // Puts a key of the client with the window.
  LogAddress PutOwn(std::string_view key, std::string_view value) {
    const LogAddress at = InChunk(tail_);
    Place(at, key, value);
    const auto outcome = Put(at, key, value);
    EXPECT_TRUE(outcome && outcome->code == Code::kOk);
    tail_ += format::ObjectSpace(key.size(), value.size());
    return at;
  }
  // Puts a key of another client after the chunk. The key had a value before, and a power cut loses its last settled
  // bit.
  void PutVictim() {
    ASSERT_EQ(store_.Inline("victim", "newest").code, Code::kOk);
    LoseSettledBit("victim");
  }
  // Expects the victim's value, found without a look through the index.
  void ExpectVictim() {
    store_.Recover();
    EXPECT_EQ(store_.Get("victim"), "newest");
    EXPECT_TRUE(store_.WordOf("victim").settled());
    EXPECT_EQ(store_.recovery().index_slots, 0U);
    EXPECT_EQ(store_.recovery().damaged, 0U);
    EXPECT_EQ(store_.Violation(), "");
  }

  Outcome chunk_;
  uint64_t tail_ = kChunkObjectsAt;
};

TEST_F(ForgedTest, AHeaderThatReachesOutOfItsChunkHidesNoOtherObject) {
  ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  Forge(InChunk(kChunkObjectsAt), "forged", RoomBehind(InChunk(kChunkObjectsAt)));
  PutVictim();
  ExpectVictim();
}

TEST_F(ForgedTest, AHeaderAtTheEndOfAChunkHidesNoOtherObject) {
  ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  PutOwn("own", std::string(300, 'x'));
  const LogAddress last = InChunk(512 - 48);
  Forge(last, "forged", RoomBehind(last));
  PutVictim();
  ExpectVictim();
  EXPECT_EQ(store_.Get("own"), std::string(300, 'x'));
}

TEST_F(ForgedTest, ForgedChunkInAChunkIsIgnored) {
  ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  Forge(InChunk(kChunkObjectsAt), "", RoomBehind(InChunk(kChunkObjectsAt)), 1, format::ObjectKind::kChunk);
  PutVictim();
  ExpectVictim();
}

TEST_F(ForgedTest, AnObjectThatWasPublishedAndEnlargedHidesNoOtherObject) {
  ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  const LogAddress own = PutOwn("own", "value");
  const LogAddress next = PutOwn("next", "value");
  LoseSettledBit("next");
  PutVictim();
  Forge(own, "own", RoomBehind(own));
  store_.Recover();
  EXPECT_EQ(store_.Get("victim"), "newest");
  EXPECT_TRUE(store_.WordOf("next").settled()) << "nor one in the chunk";
  EXPECT_EQ(store_.WordOf("next").new_address(), next);
  EXPECT_EQ(store_.recovery().index_slots, 0U);
}

// Bytes of a client make no restart take longer, whatever stands in place of a header.
TEST_F(ForgedTest, GarbageInAChunkCausesNoIndexWalk) {
  ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  *BytesAt(InChunk(kChunkObjectsAt)) = std::byte{1};
  PutVictim();
  ExpectVictim();
}

TEST_F(ForgedTest, HeaderOfAnotherClientsKeyDoesNotChangeThatKey) {
  ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  for (const uint64_t version : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
    Forge(InChunk(kChunkObjectsAt), "victim", 64, version);
    PutVictim();
    ExpectVictim();
    EXPECT_EQ(store_.Delete("victim"), Code::kOk);
    store_.Recover();
    EXPECT_EQ(store_.Get("victim"), kAbsent);
    ASSERT_EQ(store_.Inline("victim", "older").code, Code::kOk);
  }
}

// Each test forges an object in the chunk's region. Other clients have values after the chunk. The cleaner moves them,
// and the region gets another use.
class ForgedAndCleanedTest : public ForgedTest {
 protected:
  void ExpectCleaned() {
    for (int i = 0; i < 8; ++i) ASSERT_EQ(store_.Inline("other" + std::to_string(i), "value").code, Code::kOk);
    store_.versions().delegating().GiveBack(0, chunk_.address, chunk_.header.version, 0);
    store_.versions().chunks().CloseWindows(
        [&](SessionId session, uint64_t version) { store_.versions().chunks().OnWindowClosed(session, version); });
    ASSERT_EQ(Gauge(Counter::kChunks), 0U);
    const format::HeadSlot region = store_.Published(0, chunk_.address.slot());
    const std::string value(900, 'x');
    for (int i = 0; i < 4400; ++i) {
      ASSERT_EQ(store_.Put("k" + std::to_string(i % 3), value).code, Code::kOk) << "put " << i;
    }
    CleanAll();
    EXPECT_NE(store_.Published(0, chunk_.address.slot()), region) << "it was never cleaned";
    for (int i = 0; i < 8; ++i) EXPECT_EQ(store_.Get("other" + std::to_string(i)), "value");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(store_.Get("k" + std::to_string(i)), value);
  }
};

TEST_F(ForgedAndCleanedTest, CleansAfterAHeaderThatReachesOutOfItsChunk) {
  Forge(InChunk(kChunkObjectsAt), "forged", RoomBehind(InChunk(kChunkObjectsAt)));
  ExpectCleaned();
}

TEST_F(ForgedAndCleanedTest, CleansAfterAForgedChunkInAChunk) {
  Forge(InChunk(kChunkObjectsAt), "", RoomBehind(InChunk(kChunkObjectsAt)), 1, format::ObjectKind::kChunk);
  ExpectCleaned();
}

TEST_F(ForgedAndCleanedTest, CleansAfterAnEnlargedObject) {
  Forge(PutOwn("own", "value"), "own", RoomBehind(InChunk(kChunkObjectsAt)));
  ExpectCleaned();
  EXPECT_EQ(store_.Get("own"), kDamaged);
}

// The key of the forged object reaches out of the chunk, too.
TEST_F(ForgedAndCleanedTest, CleansAfterAnObjectWithAnEnlargedKey) {
  PutOwn("first", std::string(350, 'x'));
  const LogAddress own = PutOwn("own", "value");
  const auto others = AsString(std::span<const std::byte>(BytesAt(own) + format::kLabelOffset, 90));
  ASSERT_EQ(store_.Inline("behind", "value").code, Code::kOk);
  Forge(own, "own", 1024, 1, format::ObjectKind::kValue);
  format::ObjectHeader header{};
  std::memcpy(&header, BytesAt(own), sizeof(header));
  header.key_size = 90;
  header.header_crc = format::HeaderCrc(store_.versions().log().PlaceOf(0, own), header, others);
  std::memcpy(BytesAt(own), &header, sizeof(header));
  ExpectCleaned();
  EXPECT_EQ(store_.Get("behind"), "value");
}

// The client damages only its own keys.
TEST_F(ForgedAndCleanedTest, CleansAnObjectThatCoversAnother) {
  const LogAddress own = PutOwn("own", "value");
  PutOwn("covered", "value");
  Forge(own, "own", 256);
  ExpectCleaned();
  EXPECT_EQ(store_.Get("covered"), kDamaged);
  EXPECT_EQ(store_.Inline("covered", "anew").code, Code::kOk);
  EXPECT_EQ(store_.Get("covered"), "anew");
}

TEST_F(ForgedAndCleanedTest, CleansAnObjectWithAnotherClientsKey) {
  ASSERT_EQ(store_.Inline("victim", "newest").code, Code::kOk);
  const LogAddress own = PutOwn("own", "value");
  Forge(own, "victim", 64);
  ExpectCleaned();
  EXPECT_EQ(store_.Get("victim"), "newest");
  EXPECT_EQ(store_.Get("own"), kDamaged);
}

TEST_F(ForgedAndCleanedTest, CleansAnObjectThatClaimsToBeAChunk) {
  const LogAddress own = PutOwn("own", "value");
  Forge(own, "own", 64, 1, format::ObjectKind::kChunk);
  ExpectCleaned();
  EXPECT_EQ(store_.Get("own"), kDamaged);
}

// Recovery does not find the entry of the forged key. The entry keeps no region from being cleaned.
TEST_F(ForgedAndCleanedTest, CleansAnUnsettledObjectWithAnotherClientsKey) {
  const LogAddress own = PutOwn("own", "value");
  ASSERT_EQ(store_.Inline("victim", "newest").code, Code::kOk);
  LoseSettledBit("own");
  Forge(own, "victim", 64);
  store_.Recover();
  EXPECT_FALSE(store_.WordOf("own").settled());
  ExpectCleaned();
  EXPECT_EQ(store_.Get("victim"), "newest");
  EXPECT_EQ(store_.Get("own"), kDamaged);
}

// After damage the cleaner looks at each granule. So it meets headers inside of values, which the writer of the value
// has chosen.
TEST_F(ForgedAndCleanedTest, CleansAfterAHeaderInAValueThatDamageUncovers) {
  const Outcome put = store_.Inline("mallory", std::string(200, 'm'));
  const LogAddress in_value = Behind(put.address, 64);
  for (const auto kind : {format::ObjectKind::kValue, format::ObjectKind::kChunk}) {
    Forge(kind == format::ObjectKind::kValue ? in_value : Behind(in_value, 64), "forged", RoomBehind(in_value) - 64, 1,
          kind);
  }
  *(BytesAt(put.address) + 8) ^= std::byte{1};
  ExpectCleaned();
}

}  // namespace
}  // namespace erda::server
