// Puts through a staging buffer: which put has which bytes of it, and when the client sends what.
#include "client/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "client/hand_pool.h"

namespace erda::client {
namespace {

using fabric::OpKind;
using fabric::WorkRequest;
using format::Reply;
using format::Request;
using format::RequestOp;

// --- Places

TEST(StagingTest, NoBufferHasNoPlace) {
  Staging staging;
  EXPECT_FALSE(staging.Take(0));
  staging.Reset(Staging::kGranule - 1, 4);
  EXPECT_EQ(staging.bytes(), 0U);
  EXPECT_FALSE(staging.Take(0));
  EXPECT_FALSE(staging.Take(1));
}

TEST(StagingTest, TheFirstPlaceThatIsLargeEnoughIsTaken) {
  Staging staging;
  staging.Reset(1024, 16);
  EXPECT_EQ(staging.Take(100), 0U);
  EXPECT_EQ(staging.Take(1), 128U);
  EXPECT_EQ(staging.Take(0), 192U) << "of an empty value, too";
  EXPECT_EQ(staging.Take(64), 256U);
  staging.GiveBack(128);
  EXPECT_EQ(staging.Take(65), 320U) << "between others there are 64 bytes";
  EXPECT_EQ(staging.Take(64), 128U);
  staging.GiveBack(0);
  EXPECT_EQ(staging.Take(64), 0U);
  EXPECT_EQ(staging.Take(64), 64U);
}

TEST(StagingTest, WholeBufferCanBeTakenAndNoMore) {
  Staging staging;
  staging.Reset(1000, 4);
  EXPECT_EQ(staging.bytes(), 960U) << "whole lines";
  EXPECT_FALSE(staging.Take(961));
  EXPECT_FALSE(staging.Take(UINT64_MAX));
  EXPECT_EQ(staging.Take(960), 0U);
  EXPECT_FALSE(staging.Take(0));
  staging.GiveBack(0);
  EXPECT_EQ(staging.Take(960), 0U);
}

TEST(StagingTest, PlacesStayWithinTheOffsetsOfARequest) {
  Staging staging;
  staging.Reset(uint64_t{1} << 40, 4);
  EXPECT_LE(staging.bytes(), uint64_t{1} << 32);
  EXPECT_EQ(staging.Take(uint64_t{3} << 30), 0U);
  EXPECT_EQ(staging.Take(1 << 20), uint32_t{3} << 30);
  EXPECT_FALSE(staging.Take(uint64_t{1} << 30));
}

TEST(StagingTest, NewConnectionBeginsWithAnEmptyBuffer) {
  Staging staging;
  staging.Reset(128, 4);
  ASSERT_TRUE(staging.Take(128));
  staging.Reset(256, 4);
  EXPECT_EQ(staging.Take(256), 0U);
  staging.Reset(0, 0);
  EXPECT_FALSE(staging.Take(1));
}

TEST(StagingTest, PlacesNeverOverlapAndNoFreePlaceIsRefused) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Staging staging;
    constexpr uint64_t kBytes = 64 * 40;
    staging.Reset(kBytes, 40);
    std::map<uint64_t, uint64_t> taken;  // From begin to end.
    for (int step = 0; step < 2000; ++step) {
      if (!taken.empty() && random.Chance(0.5)) {
        const auto it = std::next(taken.begin(), static_cast<ptrdiff_t>(random.Uniform(taken.size())));
        staging.GiveBack(static_cast<uint32_t>(it->first));
        taken.erase(it);
        continue;
      }
      const uint64_t bytes = random.Uniform(random.Chance(0.1) ? kBytes + 10 : 300);
      const uint64_t needed = std::max<uint64_t>(AlignUp(bytes, 64), 64);
      std::optional<uint64_t> expected;  // The place by a slow search.
      for (uint64_t at = 0; at + needed <= kBytes && !expected; at += 64) {
        const bool free = std::none_of(taken.begin(), taken.end(), [&](const auto& place) {
          return place.first < at + needed && at < place.second;
        });
        if (free) expected = at;
      }
      const auto got = staging.Take(bytes);
      ASSERT_EQ(got.has_value(), expected.has_value()) << seed << " " << step;
      if (!got) continue;
      ASSERT_EQ(*got, *expected) << seed << " " << step;
      taken[*got] = *got + needed;
    }
  }
}

// --- Messages

class StagedPut : public HandPoolTest {
 protected:
  void SetUp() override {
    HandPoolTest::SetUp();
    placing_ = format::Placing::kStaging;
    staging_bytes_ = 4096;  // One segment.
    put_path_ = PutPath::kDelegate;
  }
  void Put(const std::string& key, const std::string& value, const PutOptions& options = {}) {
    outcomes_[key] = "under way";
    const Status started = engine_->Put(key, value, options, [this, key](const Result<uint64_t>& version) {
      outcomes_[key] = CodeName(version.status().code());
    });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  // Takes the next two requests posted: a value for a place, and the request that names the place.
  struct Staged {
    Request request{};
    std::string key;
    uint32_t slot = 0;
  };
  Staged TakePut(const std::string& value) {
    Staged staged;
    const WorkRequest write = fabric_->Take();
    EXPECT_EQ(write.kind, OpKind::kWrite);
    EXPECT_EQ(write.remote.region, format::kStagingRegion);
    EXPECT_EQ(AsString(write.local), value);
    const WorkRequest work = fabric_->Take();
    EXPECT_EQ(work.kind, OpKind::kWriteImm);
    EXPECT_EQ(work.remote.region, format::kRequestRegion);
    staged.request = LoadAs<Request>(work.local);
    staged.slot = work.imm;
    staged.key = AsString(work.local.subspan(sizeof(Request)));
    EXPECT_EQ(staged.request.op, static_cast<uint8_t>(RequestOp::kPutStaged));
    EXPECT_EQ(staged.request.value_size, value.size());
    EXPECT_EQ(staged.request.address, write.remote.offset);
    EXPECT_EQ(staged.key.size(), staged.request.key_size);
    return staged;
  }
  void Answer(const Staged& staged, Code code = Code::kOk) {
    Reply reply{};
    reply.id = staged.request.id;
    reply.code = static_cast<uint8_t>(code);
    reply.header.key_size = staged.request.key_size;
    reply.header.version = 7;
    std::memcpy(fabric_->offered().data() + staged.slot * sizeof(Reply), &reply, sizeof(reply));
    fabric_->ReceiveImm(staged.slot);
    engine_->Poll();
  }
  std::map<std::string, std::string> outcomes_;
};

TEST_F(StagedPut, PutPostsItsValueAndItsRequestTogether) {
  Connect();
  const uint64_t posts = fabric_->posts;
  Put("k", std::string(1000, 'v'), {.if_version = 5, .ttl = std::chrono::milliseconds(9)});
  EXPECT_EQ(fabric_->posts, posts + 1);
  const Staged put = TakePut(std::string(1000, 'v'));
  EXPECT_EQ(put.key, "k");
  EXPECT_EQ(put.request.condition, static_cast<uint8_t>(format::Condition::kVersion));
  EXPECT_EQ(put.request.version, 5U);
  EXPECT_EQ(put.request.ttl, 9U);
  EXPECT_TRUE(fabric_->posted.empty());
  Answer(put);
  EXPECT_EQ(outcomes_["k"], CodeName(Code::kOk));
  EXPECT_EQ(engine_->stats().requests, 1U);
  EXPECT_EQ(engine_->stats().nvm_bytes_written, 0U) << "the server writes";
}

TEST_F(StagedPut, EachPutHoldsASeparatePlaceUntilItsReply) {
  Connect();
  Put("a", std::string(1000, 'a'));
  const Staged a = TakePut(std::string(1000, 'a'));
  Put("b", std::string(1000, 'b'));
  engine_->Poll();
  const Staged b = TakePut(std::string(1000, 'b'));
  EXPECT_EQ(a.request.address, 0U);
  EXPECT_EQ(b.request.address, 1024U);
  Answer(a, Code::kConflict);
  EXPECT_EQ(outcomes_["a"], CodeName(Code::kConflict));
  Put("c", std::string(1000, 'c'));
  engine_->Poll();
  EXPECT_EQ(TakePut(std::string(1000, 'c')).request.address, 0U);
}

TEST_F(StagedPut, PutsWaitForRoomInOrderAndHoldNoSlotMeanwhile) {
  queue_depth_ = 16;
  Connect();  // The server gives four slots.
  const std::string large(2500, 'l');
  Put("first", large);
  const Staged first = TakePut(large);
  Put("second", large);
  Put("third", "small");  // There is room for it, but other puts wait before it.
  engine_->Poll();
  EXPECT_TRUE(fabric_->posted.empty());
  // An operation that needs no room goes on at once.
  bool deleted = false;
  ASSERT_TRUE(engine_->Delete("d", [&](const Status&) { deleted = true; }).ok());
  engine_->Poll();
  const WorkRequest request = fabric_->Take();
  EXPECT_EQ(LoadAs<Request>(request.local).op, static_cast<uint8_t>(RequestOp::kDelete));
  Answer(first);
  const Staged second = TakePut(large);
  EXPECT_EQ(second.key, "second");
  EXPECT_EQ(second.request.address, 0U);
  const Staged third = TakePut("small");
  EXPECT_EQ(third.request.address, 2560U);
  Answer(third);
  Answer(second);
  for (const char* key : {"first", "second", "third"}) EXPECT_EQ(outcomes_[key], CodeName(Code::kOk)) << key;
  EXPECT_FALSE(deleted);
}

// A put that has its place waits for a slot. Puts that wait for a place do not keep the slot from it.
TEST_F(StagedPut, ManyPutsWithFewSlotsAndLittleRoomAllEnd) {
  queue_depth_ = 64;
  Connect();
  Random random(1);
  std::map<std::string, std::string> values;
  for (int i = 0; i < 60; ++i) {
    const std::string key = "k" + std::to_string(i);
    values[key] = std::string(random.Between(0, 2800), static_cast<char>('a' + i % 26));
    Put(key, values[key]);
  }
  int answered = 0;
  for (int steps = 0; answered < 60 && steps < 1000; ++steps) {
    engine_->Poll();
    std::vector<Staged> sent;
    while (!fabric_->posted.empty()) {
      const auto works = fabric_->posted;
      const auto request = LoadAs<Request>(works[1].local);
      const std::string key(AsString(works[1].local.subspan(sizeof(Request), request.key_size)));
      sent.push_back(TakePut(values[key]));
    }
    EXPECT_LE(sent.size(), 4U);
    if (!sent.empty()) std::swap(sent.front(), sent[random.Uniform(sent.size())]);
    for (const Staged& put : sent) {
      Answer(put);
      ++answered;
    }
  }
  EXPECT_EQ(answered, 60);
  for (const auto& [key, outcome] : outcomes_) EXPECT_EQ(outcome, CodeName(Code::kOk)) << key;
}

TEST_F(StagedPut, PutsEndWithTheConnectionAndTheNextHasTheWholeBuffer) {
  Connect();
  const std::string large(2500, 'l');
  Put("sent", large);
  TakePut(large);
  Put("waits", large);
  engine_->Poll();
  fabric_->Close();
  engine_->Poll();
  engine_->Poll();
  EXPECT_EQ(outcomes_["sent"], CodeName(Code::kUnavailable));
  EXPECT_EQ(outcomes_["waits"], CodeName(Code::kUnavailable));
  ASSERT_TRUE(engine_->connections().Connect().ok());
  fabric_->Accept();
  engine_->Poll();
  ASSERT_EQ(Round(), "control");
  Put("again", large);
  engine_->Poll();
  EXPECT_EQ(TakePut(large).request.address, 0U);
}

TEST_F(StagedPut, AutoSendsAPutInlineIfItFits) {
  put_path_ = PutPath::kAuto;
  Connect();
  Put("k", std::string(100, 'v'));
  EXPECT_EQ(LoadAs<Request>(fabric_->Take().local).op, static_cast<uint8_t>(RequestOp::kPutInline));
  EXPECT_TRUE(fabric_->posted.empty());
}

TEST_F(StagedPut, ReservedPutIsRefused) {
  put_path_ = PutPath::kReserve;
  Connect();
  Put("k", "v");
  engine_->Poll();
  EXPECT_EQ(outcomes_["k"], CodeName(Code::kPermissionDenied));
  EXPECT_TRUE(fabric_->posted.empty());
}

// The client puts through a window if it has a chunk. Otherwise it stages.
class WindowedPut : public StagedPut {
 protected:
  void SetUp() override {
    StagedPut::SetUp();
    placing_ = format::Placing::kWindow;
  }
};

// The first answer makes room for operations that wait for a slot. They post, find that the channel has failed, and so
// all operations end. An operation that was about to go another way must not begin again.
TEST_F(WindowedPut, PutThatEndedWithTheChannelDoesNotBeginAgain) {
  Connect();
  const std::string value(100, 'v');
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) Put(key, value);
  engine_->Poll();
  const auto is_staged = [](const WorkRequest& work) {
    return work.kind == OpKind::kWriteImm &&
           LoadAs<Request>(work.local).op == static_cast<uint8_t>(RequestOp::kPutStaged);
  };
  const auto sent = std::ranges::find_if(fabric_->posted, is_staged);
  ASSERT_NE(sent, fabric_->posted.end());
  Staged staged;
  staged.request = LoadAs<Request>(sent->local);
  staged.slot = sent->imm;
  fabric_->fails_posts = true;
  Answer(staged);
  fabric_->fails_posts = false;
  engine_->Poll();
  for (const char* key : {"b", "c", "d", "e", "f"}) EXPECT_EQ(outcomes_[key], CodeName(Code::kUnavailable)) << key;
  EXPECT_EQ(engine_->in_flight(), 0U);

  Put("g", value);
  fabric_->Accept();
  engine_->Poll();
  ASSERT_EQ(Round(), "control");
  engine_->Poll();
  EXPECT_NE(std::ranges::find_if(fabric_->posted, is_staged), fabric_->posted.end());
}

}  // namespace
}  // namespace erda::client
