// The loop of the engine: gets that begin together, and operations whose time is over.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/engine_fixture.h"

namespace erda::client {
namespace {

class TogetherTest : public EngineTest {
 protected:
  void Get(const std::string& key) {
    const Status started =
        engine_->Get(key, [this](const Result<std::string_view>& value) { ends_.push_back(value.status().code()); });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  // The callback of the put starts two gets.
  void End(const Status& status) override {
    EngineTest::End(status);
    Get("a");
    Get("b");
    EXPECT_TRUE(fabric_->posted.empty()) << "they have not begun";
  }
  std::vector<Code> ends_;
};

TEST_F(TogetherTest, GetsThatACallbackStartsShareOneDoorbell) {
  Put(100);
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  Answer(put, {});
  fabric_->Complete(put);  // The Poll finds this, too.
  const uint64_t posts = fabric_->posts;
  engine_->Poll();
  EXPECT_EQ(fabric_->posted.size(), 2U);
  EXPECT_EQ(fabric_->posts, posts + 1);
}

TEST_F(TogetherTest, GetsThatHaveNotBegunEndWithTheConnection) {
  Put(100);
  Answer(TakeRequest(RequestOp::kPutInline), {});
  fabric_->Close();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
  EXPECT_EQ(ends_, (std::vector{Code::kUnavailable, Code::kUnavailable}));
  EXPECT_EQ(engine_->in_flight(), 0U);
  // The next ones have the same places, and wait for the next connection.
  Get("c");
  Get("d");
  engine_->Poll();
  EXPECT_EQ(ends_.size(), 2U);
  EXPECT_EQ(engine_->in_flight(), 2U);
}

using TimeoutTest = EngineTest;

// A call that sleeps between its looks polls rarely. It may not take many Polls until one looks at the clock.
TEST_F(TimeoutTest, EachPollAfterAWaitLooksAtTheClock) {
  Put(100);
  TakeRequest(RequestOp::kPutInline);
  engine_->event_loop().Wait(Nanoseconds(1));
  engine_->Poll();  // The time of the put begins.
  clock_.now += kTimeout;
  engine_->event_loop().Wait(Nanoseconds(1));
  engine_->Poll();
  engine_->Poll();  // Runs the callbacks of ended operations.
  EXPECT_EQ(end_, "") << "its time is not over";
  clock_.now += Nanoseconds(1) + kTimeout / 16;  // The time from one look to the next.
  engine_->event_loop().Wait(Nanoseconds(1));
  engine_->Poll();
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kTimeout));
}

}  // namespace
}  // namespace erda::client
