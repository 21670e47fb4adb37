// A get without an operation (Engine::GetNow): it reads a version at a known place, if the fabric reads at once.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "client/engine.h"
#include "client/located_fixture.h"

namespace erda::client {
namespace {

class GetNowTest : public LocatedTest {
 protected:
  // The location is known, and the fabric reads at once.
  void SetUp() override {
    LocatedTest::SetUp();
    Write(kPlace, 1, format::kNoAddress, "value", 0);
    Name(kPlace);
    ASSERT_EQ(ReadsOfGet(), "ev");
    fabric_->read_now = [this](std::span<std::byte> local, fabric::RemoteAddress remote) {
      ++reads_;
      std::memcpy(local.data(), log_.data() + (remote.offset - geometry_.RegionOffset(0)), local.size());
      return reads_now_;
    };
  }
  // "-" if it takes an operation.
  std::string GetNow(std::string_view key = kKey) {
    VersionedView found;
    return engine_->GetNow(key, &found) == Engine::Now::kValue ? std::string(found.value) : "-";
  }

  uint64_t reads_ = 0;
  bool reads_now_ = true;
};

TEST_F(GetNowTest, GetNowReadsTheVersionAndPostsNothing) {
  const ClientStats before = engine_->stats();
  EXPECT_EQ(GetNow(), "value");
  EXPECT_EQ(reads_, 1U);
  EXPECT_TRUE(fabric_->posted.empty());
  EXPECT_EQ(engine_->in_flight(), 0U);
  EXPECT_EQ(engine_->stats().gets, before.gets + 1);
  EXPECT_EQ(engine_->stats().reads, before.reads + 1);
  EXPECT_EQ(engine_->stats().cache_hits, before.cache_hits + 1);
}

TEST_F(GetNowTest, LeftVersionIsNotReturnedAndTheNextGetFindsTheNewOne) {
  SetLeft(kPlace);
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(engine_->stats().cache_misled, 0U);
  Write(kOther, 2, kPlace, "newer", 0);
  Name(kOther);
  EXPECT_EQ(ReadsOfGet(), "vev");
  EXPECT_EQ(got_, "newer");
  EXPECT_EQ(engine_->stats().cache_misled, 1U);
  EXPECT_EQ(ReadsOfGet(), "ev") << "seen twice there";
  EXPECT_EQ(GetNow(), "newer");
}

TEST_F(GetNowTest, BytesThatDoNotVerifyAreNotReturned) {
  *InLog(kPlace) ^= std::byte{1};
  EXPECT_EQ(GetNow(), "-");
  std::string other(kKey);
  other.back() ^= 1;
  Write(kPlace, 1, format::kNoAddress, "value", 0, other);
  EXPECT_EQ(GetNow(), "-") << "another key's, whole";
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  EXPECT_EQ(GetNow(), "value");
}

TEST_F(GetNowTest, GetNowNeedsAFabricThatReadsAtOnce) {
  reads_now_ = false;
  EXPECT_EQ(GetNow(), "-");
}

TEST_F(GetNowTest, UnlocatedAndInvalidKeysTakeNoRead) {
  EXPECT_EQ(GetNow("unknown"), "-");
  EXPECT_EQ(GetNow(""), "-");
  EXPECT_EQ(GetNow(std::string(format::kKeyBytesMax + 1, 'k')), "-");
  EXPECT_EQ(reads_, 0U);
}

// Operations on one key keep their order, and a callback is not run inside another call.
TEST_F(GetNowTest, GetNowReturnsNothingWhileAnOperationIsUnderWay) {
  Get();
  EXPECT_EQ(GetNow(), "-");
  Serve();
  EXPECT_EQ(GetNow(), "value");
  EXPECT_EQ(reads_, 1U);
}

TEST_F(GetNowTest, GetNowReturnsNothingInsideACallback) {
  std::string inside;
  ASSERT_TRUE(engine_->Get(kKey, [&](const Result<std::string_view>&) { inside = GetNow(); }).ok());
  Serve();
  EXPECT_EQ(inside, "-");
  EXPECT_EQ(GetNow(), "value");
}

// Its memory would be the next operation's.
TEST_F(GetNowTest, ValueLargerThanAnOperationsMemoryIsNotRead) {
  const std::string large(kMessageBytes, 'l');
  Write(kPlace, 2, format::kNoAddress, large, 0);
  EXPECT_EQ(GetNow(), "-") << "the size that is known is another one";
  for (int i = 0; i < 3; ++i) ReadsOfGet();
  ASSERT_EQ(got_, large);
  const uint64_t reads = reads_;
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(reads_, reads);
}

// The server may ask it back, and who polls hears of that.
class GetNowChunkTest : public GetNowTest {
 protected:
  [[nodiscard]] PutPath path() const override { return PutPath::kDelegate; }
};

TEST_F(GetNowChunkTest, GetNowReturnsNothingWhileTheClientHasAChunk) {
  EXPECT_EQ(GetNow(), "value");
  ASSERT_TRUE(engine_->Put("another key", std::string(100, 'v'), [](const Status&) {}).ok());
  const WorkRequest asks = TakeRequest(RequestOp::kDelegate);
  EngineTest::Answer(TakeRequest(RequestOp::kPutInline), {});
  engine_->Poll();
  EngineTest::Answer(asks, ChunkFor(asks, LoadAs<Request>(asks.local).version));
  engine_->Poll();
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(reads_, 1U);
}

TEST_F(GetNowTest, GetNowReturnsNothingWithoutAConnection) {
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(GetNow(), "-");
  EXPECT_EQ(reads_, 0U);
}

// A client that gets, and nothing else, hears all the same what the server has to say.
TEST_F(GetNowTest, OneOfManyGetsPolls) {
  int polls = 0;
  for (int i = 0; i < 10'000; ++i) polls += GetNow() == "-" ? 1 : 0;
  EXPECT_GE(polls, 10);
  EXPECT_LE(polls, 100);
}

}  // namespace
}  // namespace erda::client
