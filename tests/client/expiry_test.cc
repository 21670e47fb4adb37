// Values with a deadline: gets that compare it with the time of the shard or of the server, and puts that send it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "client/engine.h"
#include "client/expiry.h"
#include "client/located_fixture.h"
#include "format/control_block.h"
#include "format/hello.h"
#include "format/index_entry.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {
namespace {

class ExpiryTest : public LocatedTest {
 protected:
  void WriteFor(uint64_t millis) {
    Write(kPlace, 1, format::kNoAddress, "value", 0, kKey, kServerMillis + millis);
    Name(kPlace);
  }
  // For the client, and for the shard, whose word tells it.
  void PassTime(uint64_t millis) {
    clock_.now += std::chrono::milliseconds(millis);
    shard_time_ += millis;
  }
  // The slot in which the server is asked for its time, by a message without bytes.
  uint32_t TakeTimeQuestion() {
    const WorkRequest work = fabric_->Take();
    EXPECT_EQ(work.kind, OpKind::kWriteImm);
    EXPECT_TRUE(work.local.empty());
    EXPECT_EQ(work.imm & format::kAsksTime, format::kAsksTime);
    return work.imm & ~format::kAsksTime;
  }
  void AnswerTime(uint32_t slot, const Reply& reply) {
    std::memcpy(fabric_->offered().data() + slot * sizeof(Reply), &reply, sizeof(reply));
    fabric_->ReceiveImm(slot);
  }
  // Answers the question for the server's time: `millis` milliseconds since it accepted.
  void TellTime(uint64_t millis) {
    Reply reply{};
    reply.number = (kServerMillis + millis) * 1000;
    AnswerTime(TakeTimeQuestion(), reply);
  }
  // The client asks for the time, and learns it. Then the shard's time moves on, and the client gets the value.
  void LearnTime(uint64_t millis, uint64_t shard_millis) {
    GetUntilItAsks();
    TellTime(millis);
    shard_time_ += shard_millis;
    engine_->Poll();
    ServeAll();
  }
  // The newest version cannot be returned, and the one before it was moved and expires. It leads to the
  // original.
  void WriteMoved() {
    entry_ = format::EntryWord::Make(true, kNewest, kMoved, false);
    WriteNewest(kOriginal);
    Write(kOriginal, 2, format::kNoAddress, "original", 0);
    Write(kMoved, 2, format::kNoAddress, "moved", 0, kKey, kServerMillis + 10);
  }
  bool ReadNow(std::span<std::byte> local, fabric::RemoteAddress remote) {
    if (remote.region == kTimeWord.region) {
      std::memcpy(local.data(), &shard_time_, sizeof(shard_time_));
    } else {
      std::memcpy(local.data(), log_.data() + (remote.offset - geometry_.RegionOffset(0)), local.size());
    }
    return true;
  }
  // Answers the Read of the version; then it gives way to another, and its deadline passes.
  void ReplaceBehindTheRead() {
    const WorkRequest read = fabric_->Take();
    ASSERT_TRUE(Reads(read, kPlace));
    Answer(read);
    Write(kOther, 2, kPlace, "newer", 0);
    SetLeft(kPlace);
    Name(kOther);
    PassTime(100);
    engine_->Poll();
  }
  // Gets, with answers to all Reads, until something else is posted.
  void GetUntilItAsks() {
    got_ = "";
    Get();
    ServeAll();
    ASSERT_EQ(got_, "");
  }
  void ServeAll() {
    for (int i = 0; !fabric_->posted.empty() && fabric_->posted.front().kind == OpKind::kRead; ++i) {
      ASSERT_LT(i, 1000) << "it begins again for ever";
      const WorkRequest work = fabric_->Take();
      const bool entry = work.remote.region == format::kPoolRegion && work.remote.offset < geometry_.RegionOffset(0);
      entry ? AnswerEntry(work) : Answer(work);
      engine_->Poll();
    }
  }
};

TEST_F(ExpiryTest, ValueIsPresentUntilTheShardsTimeReachesItsDeadline) {
  WriteFor(10);
  EXPECT_EQ(ReadsOfGet(), "evt");
  EXPECT_EQ(got_, "value");
  PassTime(9);
  EXPECT_EQ(ReadsOfGet(), "vt");
  EXPECT_EQ(got_, "value");
  // The first get that Reads such a time begins from the start: there may have been a put before the deadline.
  PassTime(1);
  EXPECT_EQ(ReadsOfGet(), "vtev");
  EXPECT_EQ(got_, "not found");
  EXPECT_EQ(ReadsOfGet(), "vt");
  EXPECT_EQ(got_, "not found");
  VersionedView found;
  fabric_->read_now = [this](auto local, auto remote) { return ReadNow(local, remote); };
  EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kAbsent);
}

TEST_F(ExpiryTest, ClientWithAStoppedClockReturnsNoExpiredValue) {
  WriteFor(10);
  EXPECT_EQ(ReadsOfGet(), "evt");
  EXPECT_EQ(got_, "value");
  shard_time_ += 10;
  EXPECT_EQ(ReadsOfGet(), "vtev");
  EXPECT_EQ(got_, "not found");
  Write(kOther, 1, format::kNoAddress, "other", 0, kKey, kServerMillis + 11);
  Name(kOther);
  shard_time_ += 1;
  SetLeft(kPlace);
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, GetOfAValueWithoutADeadlineReadsNoTime) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  EXPECT_EQ(ReadsOfGet(), "v");
  // A known value without a deadline costs no Read of the time, even if the key's last value had a deadline.
  Write(kOther, 2, kPlace, "brief", 0, kKey, kServerMillis + 10);
  Name(kOther);
  SetLeft(kPlace);
  EXPECT_EQ(ReadsOfGet(), "vevt");
  EXPECT_EQ(ReadsOfGet(), "vt");
  Write(kPlace, 3, kOther, "stays", 0);
  Name(kPlace);
  SetLeft(kOther);
  EXPECT_EQ(ReadsOfGet(), "vtev");
  EXPECT_EQ(ReadsOfGet(), "v");
  EXPECT_EQ(got_, "stays");
}

// The shard may publish a version after its deadline. A time that the client Read before the publication does not show
// that.
TEST_F(ExpiryTest, TimeIsReadAfterTheVersionThatTheEntryNames) {
  WriteFor(10);
  got_ = "";
  Get();
  AnswerEntry(fabric_->Take());
  engine_->Poll();
  const WorkRequest version = fabric_->Take();
  ASSERT_TRUE(Reads(version, kPlace));
  ASSERT_TRUE(fabric_->posted.empty());
  shard_time_ += 10;
  Answer(version);
  engine_->Poll();
  ASSERT_EQ(fabric_->posted.size(), 1U);
  EXPECT_TRUE(ReadsTime(fabric_->posted.front()));
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, TimeIsReadTogetherWithAVersionAtAKnownPlace) {
  WriteFor(10);
  ReadsOfGet();
  got_ = "";
  Get();
  ASSERT_EQ(fabric_->posted.size(), 2U) << "one round trip";
  EXPECT_TRUE(Reads(fabric_->posted.front(), kPlace));
  EXPECT_TRUE(ReadsTime(fabric_->posted.back()));
  ServeAll();
  EXPECT_EQ(got_, "value");
}

TEST_F(ExpiryTest, GreatestWordCountsAsATime) {
  WriteFor(10);
  shard_time_ = UINT64_MAX;
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, ClientAsksTheServerIfOnlyItsOwnClockHasPassedTheDeadline) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  LearnTime(9, 9);  // its clock is a little slow
  EXPECT_EQ(got_, "value");
  clock_.now += std::chrono::milliseconds(1);
  LearnTime(10, 1);
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, PutSendsItsTimeToLiveAndLeavesRoomForTheDeadline) {
  const auto started = [&](size_t bytes) {
    return engine_->Put(kKey, std::string(bytes, 'v'), PutOptions{{}, std::chrono::milliseconds(7)},
                        [this](const Result<uint64_t>& version) { End(version.status()); });
  };
  ASSERT_TRUE(started(10).ok());
  const WorkRequest inline_put = TakeRequest(RequestOp::kPutInline);
  EXPECT_EQ(LoadAs<Request>(inline_put.local).ttl, 7U);
  EngineTest::Answer(inline_put, {});
  engine_->Poll();
  ASSERT_TRUE(started(5000).ok());
  const WorkRequest reserve = TakeReserve();
  EXPECT_EQ(LoadAs<Request>(reserve.local).ttl, 7U);
  Reply reply{};
  reply.address = LogAddress::At(0, 4096).raw();
  reply.generation = 1;
  reply.header.key_size = static_cast<uint16_t>(std::string_view(kKey).size());
  reply.header.flags = format::ObjectHeader::kExpiresFlag;
  reply.header.value_size = 5000;
  reply.header.key_hash = HashKey(kKey);
  EngineTest::Answer(reserve, reply);
  engine_->Poll();
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.remote.offset,
            geometry_.RegionOffset(0) + 4096 + format::ChecksumOffset(std::string_view(kKey).size() + 8));
}

TEST_F(ExpiryTest, ReservationThatForgetsTheDeadlineFailsThePut) {
  ASSERT_TRUE(engine_
                  ->Put(kKey, std::string(5000, 'v'), PutOptions{{}, std::chrono::milliseconds(7)},
                        [this](const Result<uint64_t>& version) { End(version.status()); })
                  .ok());
  Reserve(TakeReserve(), 5000);
  engine_->Poll();
  EXPECT_EQ(end_, "unavailable");
}

TEST_F(ExpiryTest, TimeToLiveHasLimits) {
  const auto put = [&](int64_t ttl, size_t bytes) {
    return engine_
        ->Put(kKey, std::string(bytes, 'v'), PutOptions{{}, std::chrono::milliseconds(ttl)},
              [this](const Result<uint64_t>& version) { End(version.status()); })
        .code();
  };
  for (const int64_t ttl : {INT64_MIN, int64_t{-1}, int64_t{0}, (int64_t{1} << 48) + 1, INT64_MAX}) {
    EXPECT_EQ(put(ttl, 10), Code::kInvalidArgument) << ttl;
  }
  const uint64_t most = format::ValueBytesMax(geometry_, std::string_view(kKey).size());
  EXPECT_EQ(put(1, most - format::kDeadlineBytes + 1), Code::kInvalidArgument);
  EXPECT_TRUE(fabric_->posted.empty());
  EXPECT_EQ(engine_->in_flight(), 0U);
  ASSERT_EQ(put(int64_t{1} << 48, 10), Code::kOk);
  EXPECT_EQ(LoadAs<Request>(TakeRequest(RequestOp::kPutInline).local).ttl, uint64_t{1} << 48);
  ASSERT_EQ(put(1, most - format::kDeadlineBytes), Code::kOk);
}

TEST_F(ExpiryTest, NextOperationInheritsNoTimeToLive) {
  ASSERT_TRUE(
      engine_->Put(kKey, "v", PutOptions{{}, std::chrono::milliseconds(7)}, [](const Result<uint64_t>&) {}).ok());
  EngineTest::Answer(TakeRequest(RequestOp::kPutInline), {});
  engine_->Poll();
  Put(10);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  EXPECT_EQ(LoadAs<Request>(put.local).ttl, 0U);
  EngineTest::Answer(put, {});
  engine_->Poll();
  ASSERT_TRUE(engine_->Increment(kKey, 1, [](const Result<int64_t>&) {}).ok());
  EXPECT_EQ(LoadAs<Request>(TakeRequest(RequestOp::kIncrement).local).ttl, 0U);
}

TEST_F(ExpiryTest, GetReportsWhenItsValueExpires) {
  std::optional<Deadline> expires;
  const auto get = [&] {
    expires.reset();
    const Status started = engine_->GetVersioned(kKey, [&](const Result<VersionedView>& got) {
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(got->value, "value");
      EXPECT_EQ(got->version, 1U);
      expires = got->expires;
    });
    ASSERT_TRUE(started.ok());
    ServeAll();
  };
  WriteFor(10);
  get();
  EXPECT_EQ(expires, Deadline(std::chrono::milliseconds(kServerMillis + 10)));
  get();
  EXPECT_EQ(expires, Deadline(std::chrono::milliseconds(kServerMillis + 10)));
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  get();
  EXPECT_EQ(expires, std::nullopt);
}

// Between the Read and the deadline another put may have ended, and then the key was never absent.
TEST_F(ExpiryTest, TimeReadAfterTheEntryDoesNotMakeTheKeyAbsent) {
  WriteFor(10);
  Get();
  AnswerEntry(fabric_->Take());
  engine_->Poll();
  ReplaceBehindTheRead();
  EXPECT_EQ(got_, "");
  ServeAll();
  EXPECT_EQ(got_, "newer");
}

TEST_F(ExpiryTest, TimeReadAfterAKnownVersionDoesNotMakeTheKeyAbsent) {
  WriteFor(10);
  EXPECT_EQ(ReadsOfGet(), "evt");
  got_ = "";
  Get();
  ReplaceBehindTheRead();
  EXPECT_EQ(got_, "");
  ServeAll();
  EXPECT_EQ(got_, "newer");
}

TEST_F(ExpiryTest, GetAsksForTheTimeOnceUntilTheAnswer) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  const uint32_t slot = TakeTimeQuestion();
  for (int i = 0; i < 10; ++i) {
    const WorkRequest work = fabric_->Take();
    ASSERT_EQ(work.kind, OpKind::kRead);
    Reads(work, kPlace) || ReadsTime(work) ? Answer(work) : AnswerEntry(work);
    engine_->Poll();
    ASSERT_EQ(got_, "");
  }
  Reply reply{};
  reply.number = (kServerMillis + 10) * 1000;
  AnswerTime(slot, reply);
  shard_time_ += 10;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, ShardsTimeDecidesWithoutAnAnswer) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  TakeTimeQuestion();
  shard_time_ += 10;
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "not found");
}

TEST_F(ExpiryTest, InvalidAnswerEndsTheConnectionAndTheNextHelloTellsTheTime) {
  for (const bool refused : {false, true}) {
    SCOPED_TRACE(refused);
    WriteFor(10);
    clock_.now += std::chrono::milliseconds(10);
    GetUntilItAsks();
    const uint32_t slot = TakeTimeQuestion();
    Reply reply{};
    reply.id = refused ? 0 : 1;
    reply.code = static_cast<uint8_t>(refused ? Code::kInternal : Code::kOk);
    AnswerTime(slot, reply);
    engine_->Poll();
    EXPECT_EQ(got_, "unavailable");
    ASSERT_EQ(fabric_->channel(), nullptr);
    got_ = "";
    Get();
    fabric_->Accept();
    engine_->Poll();
    TellSlots(1);
    engine_->Poll();
    ServeAll();
    EXPECT_EQ(got_, "value") << "the server that it is connected to said so just now";
  }
}

TEST_F(ExpiryTest, LostConnectionEndsAGetThatAskedForTheTime) {
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  GetUntilItAsks();
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(got_, "unavailable");
  Get();
  fabric_->Accept();
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
  clock_.now += std::chrono::milliseconds(10);
  LearnTime(10, 10);
  EXPECT_EQ(got_, "not found");
}

// Its word may begin lower. The word of the server before does not count for it.
TEST_F(ExpiryTest, NextServersTimeMayBeEarlier) {
  WriteFor(10);
  PassTime(10);
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
  fabric_->Close();
  engine_->Poll();
  shard_time_ -= 10;
  Get();
  fabric_->Accept();
  engine_->Poll();
  TellSlots(1);
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
}

TEST_F(ExpiryTest, TimeIsAskedForLaterIfNoRequestSlotIsFree) {
  std::vector<WorkRequest> puts;
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(engine_->Put(key, "v", [](const Status&) {}).ok());
    engine_->Poll();
    puts.push_back(TakeRequest(RequestOp::kPutInline));
  }
  WriteFor(10);
  clock_.now += std::chrono::milliseconds(10);
  got_ = "";
  Get();
  engine_->Poll();
  for (int i = 0; i < 10; ++i) {
    const WorkRequest work = fabric_->Take();
    ASSERT_EQ(work.kind, OpKind::kRead);
    Reads(work, kPlace) || ReadsTime(work) ? Answer(work) : AnswerEntry(work);
    engine_->Poll();
    ASSERT_EQ(got_, "");
  }
  EngineTest::Answer(puts.front(), {});
  engine_->Poll();
  ServeAll();
  TellTime(9);
  engine_->Poll();
  ServeAll();
  EXPECT_EQ(got_, "value");
}

TEST_F(ExpiryTest, MovedOldVersionExpiresToo) {
  WriteMoved();
  ReadsOfGet();
  EXPECT_EQ(got_, "moved");
  PassTime(11);
  ReadsOfGet();
  EXPECT_EQ(got_, "not found");
  // The newer version counts, and the deadline of the old one does not.
  Write(kOriginal, 3, format::kNoAddress, "newer", 0);
  ReadsOfGet();
  EXPECT_EQ(got_, "newer");
}

TEST_F(ExpiryTest, OldVersionWithADamagedDeadlineIsIgnored) {
  WriteMoved();
  *(InLog(kMoved) + format::kLabelOffset) ^= std::byte{1};
  ReadsOfGet();
  EXPECT_EQ(got_, "original") << "it need not be passed: the old one may be older";
}

class ExpiryNowTest : public ExpiryTest {
 protected:
  void SetUp() override {
    ExpiryTest::SetUp();
    fabric_->read_now = [this](auto local, auto remote) { return ReadNow(local, remote); };
  }
};

TEST_F(ExpiryNowTest, GetNowReturnsOnlyCertainOutcomesAndSendsNothing) {
  WriteFor(100);
  EXPECT_EQ(ReadsOfGet(), "evt");
  VersionedView found;
  const ClientStats first = engine_->stats();
  ASSERT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kValue);
  EXPECT_EQ(found.value, "value");
  EXPECT_EQ(found.version, 1U);
  EXPECT_EQ(found.expires, Deadline(std::chrono::milliseconds(kServerMillis + 100)));
  const ClientStats before = engine_->stats();
  EXPECT_EQ(before.reads, first.reads + 2) << "the version, and the time";
  clock_.now += std::chrono::milliseconds(100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kNo) << "the shard may not know";
  shard_time_ += 100;
  EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kNo) << "the version was read before the time was";
  EXPECT_EQ(engine_->stats().gets, before.gets);
  EXPECT_TRUE(fabric_->posted.empty());
  EXPECT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kAbsent);
  EXPECT_EQ(engine_->stats().gets, before.gets + 1);
}

TEST_F(ExpiryNowTest, GetNowOfAValueWithoutADeadlineTakesOneRead) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  VersionedView found;
  const uint64_t before = engine_->stats().reads;
  ASSERT_EQ(engine_->GetNow(kKey, &found), Engine::Now::kValue);
  EXPECT_EQ(engine_->stats().reads, before + 1);
}

}  // namespace
}  // namespace erda::client
