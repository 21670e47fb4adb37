// A put of the engine, against a server that answers by hand: when it ends, and when its memory is given back.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/hand_clock.h"
#include "client/engine.h"
#include "client/engine_fixture.h"
#include "client/hand_fabric.h"

namespace erda::client {
namespace {

// A channel may still use the memory until the channel is destroyed. tests/client/hand_fabric.h checks that.
TEST_F(EngineTest, MemoryOfALargeValueOutlivesTheChannel) {
  ASSERT_TRUE(engine_->Put("key", std::string(100 << 10, 'v'), [](const Status& /*status*/) {}).ok());
  ASSERT_FALSE(fabric_->posted.empty());
  ASSERT_FALSE(fabric_->posted.front().local.empty());
  engine_.reset();
}

// A request has 32 bits for the size. The value lies in memory that cannot be read, so the client must not read it.
TEST(UnconnectedTest, TooLargeValueIsRefusedBeforeThePoolIsKnown) {
  constexpr size_t kBytes = (size_t{4} << 30) + 5;
  void* const memory = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  HandClock clock;
  auto engine = Engine::Create(std::make_shared<HandFabric>(), "hand:server", {}, clock);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  const Status status = (*engine)->Put("key", {static_cast<const char*>(memory), kBytes}, [](const Status&) {});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("4 GiB"), std::string_view::npos) << status.ToString();
  ::munmap(memory, kBytes);
}

// The shard keeps their order. A delete waits for both, since the shard may answer it before a put that waits there.
TEST_F(EngineTest, InlinePutsOfOneKeyAreUnderWayTogether) {
  Put(64);
  Put(64);
  engine_->Poll();
  const WorkRequest first = TakeRequest(RequestOp::kPutInline);
  const WorkRequest second = TakeRequest(RequestOp::kPutInline);
  ASSERT_TRUE(engine_->Delete(kKey, [](const Status& /*status*/) {}).ok());
  for (const WorkRequest& put : {first, second}) {
    engine_->Poll();
    EXPECT_TRUE(fabric_->posted.empty());
    Answer(put, {});
    engine_->Poll();
  }
  (void)TakeRequest(RequestOp::kDelete);
}

TEST_F(EngineTest, InlinePutsThatWaitedForADeleteGoOnTogether) {
  ASSERT_TRUE(engine_->Delete(kKey, [](const Status& /*status*/) {}).ok());
  for (int i = 0; i < 3; ++i) Put(64);
  engine_->Poll();
  const WorkRequest deletion = TakeRequest(RequestOp::kDelete);
  EXPECT_TRUE(fabric_->posted.empty());
  Answer(deletion, {});
  engine_->Poll();
  for (int i = 0; i < 3; ++i) (void)TakeRequest(RequestOp::kPutInline);
}

// A large value is sent from memory that the engine gives back when the operation ends. The device may send it again
// until it has completed. The reply is another message, and may come first.
using LargePutTest = EngineTest;

TEST_F(LargePutTest, RefusedPutEndsOnlyAfterItsRequestIsSent) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  EXPECT_TRUE(reserve.signaled) << "nobody would say when it is sent";
  Refuse(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, "") << "its request is not sent";
  ASSERT_TRUE(fabric_->Knows(reserve.local)) << "what is not sent is not registered any more";
  fabric_->Complete(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kResourceExhausted));
  EXPECT_FALSE(fabric_->Knows(reserve.local)) << "the memory goes with it";
}

TEST_F(LargePutTest, PutEndsOnlyAfterBothItsRequestsAreSent) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  Reserve(reserve, kLargeValue);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  const WorkRequest commit = TakeRequest(RequestOp::kCommit);
  EXPECT_TRUE(commit.signaled) << "nobody would say when it is sent";
  Answer(commit, {});
  engine_->Poll();
  EXPECT_EQ(end_, "") << "neither request is sent";
  ASSERT_TRUE(fabric_->Knows(commit.local)) << "what is not sent is not registered any more";
  fabric_->Complete(reserve);
  engine_->Poll();
  EXPECT_EQ(end_, "") << "the second request is not sent";
  ASSERT_TRUE(fabric_->Knows(commit.local)) << "what is not sent is not registered any more";
  fabric_->Complete(commit);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

TEST_F(LargePutTest, NextOperationOfTheKeyWaitsUntilTheRequestIsSent) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  ASSERT_TRUE(engine_->Delete(kKey, [](const Status&) {}).ok());
  Refuse(reserve);
  engine_->Poll();
  EXPECT_TRUE(fabric_->posted.empty()) << "the delete did not wait";
  fabric_->Complete(reserve);
  engine_->Poll();
  TakeRequest(RequestOp::kDelete);
}

// A put that knows its outcome keeps it. When the callback runs, the channel that might still send is gone.
class ClosedLargePutTest : public LargePutTest {
 protected:
  void End(const Status& status) override {
    EXPECT_EQ(fabric_->channel(), nullptr) << "the channel could still send what goes now";
    LargePutTest::End(status);
  }
};

TEST_F(ClosedLargePutTest, KnownOutcomeIsReportedWhenTheConnectionEnds) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  Refuse(reserve);
  engine_->Poll();
  ASSERT_EQ(end_, "");
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kResourceExhausted));
}

using SmallPutTest = EngineTest;

TEST_F(SmallPutTest, SmallPutEndsWithTheReply) {
  Put(100);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  EXPECT_FALSE(put.signaled) << "its memory stays, whatever becomes of it";
  Answer(put, {});
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

}  // namespace
}  // namespace erda::client
