// One shard that is reached on two fabrics at once.
#include "sim/ports.h"

#include <optional>

namespace erda::sim {
namespace {

using format::Counter;

TEST_F(PortsTest, ClientsOfEachPortSeeThePutsOfTheOther) {
  const auto first = MakeClient("a", 0);
  const auto second = MakeClient("b", 1);
  EXPECT_EQ(Put(*first, "key", "of the first"), Code::kOk);
  EXPECT_EQ(Get(*second, "key"), "of the first");
  EXPECT_EQ(Put(*second, "key", "of the second"), Code::kOk);
  EXPECT_EQ(Get(*first, "key"), "of the second");
  EXPECT_EQ(Count(Counter::kClients), 2U);
}

// The client of one port dies while its put is under way. The shard takes back that put, and nothing of the other port.
TEST_F(PortsTest, DeathOnOnePortTakesBackNothingOfTheOther) {
  for (size_t dies = 0; dies < kPorts; ++dies) {
    const std::string name = "mortal" + std::to_string(dies);
    auto mortal = MakeClient(name, dies);
    const auto steady = MakeClient("steady" + std::to_string(dies), 1 - dies);
    EXPECT_EQ(Put(*mortal, "mine", "old"), Code::kOk);
    EXPECT_EQ(Put(*steady, "yours", "old"), Code::kOk);

    const uint64_t taken_back = Count(Counter::kTakenBack);
    const std::string value(3000, 'n');
    ASSERT_TRUE(mortal->Put("mine", value, [](const Status&) {}).ok());
    const uint64_t reserved = Count(Counter::kPutsReserved);
    ASSERT_TRUE(RunUntil({mortal.get()}, [&] { return Count(Counter::kPutsReserved) > reserved; }));
    network_.KillNode(name);
    ASSERT_TRUE(RunUntil({steady.get()}, [&] { return Count(Counter::kTakenBack) > taken_back; }));
    EXPECT_EQ(Count(Counter::kTakenBack), taken_back + 1);
    EXPECT_EQ(Get(*steady, "mine"), "old");
    EXPECT_EQ(Put(*steady, "yours", value), Code::kOk);
    EXPECT_EQ(Get(*steady, "yours"), value);
    EXPECT_EQ(Count(Counter::kViolations), 0U);
  }
}

// A busy port does not delay the other one: each Poll looks at both.
TEST_F(PortsTest, EveryPollLooksAtAllPorts) {
  const auto first = MakeClient("a", 0);
  const auto second = MakeClient("b", 1);
  EXPECT_EQ(Put(*first, "x", "1"), Code::kOk);
  EXPECT_EQ(Put(*second, "y", "1"), Code::kOk);
  int done = 0;
  for (int i = 0; i < 10; ++i) {
    const auto count = [&](const Status& status) { done += status.ok() ? 1 : 0; };
    ASSERT_TRUE(first->Delete("x" + std::to_string(i), count).ok());
    ASSERT_TRUE(second->Delete("y" + std::to_string(i), count).ok());
  }
  first->Poll();
  second->Poll();
  network_.RunUntil(network_.Now() + std::chrono::seconds(1));  // all requests arrive
  EXPECT_EQ(shard_->Poll(), 20U);
}

// A shard that polls without finding work polls as often in a millisecond as a busy one in a second.
TEST_F(PortsTest, PollsWithoutWorkRevokeNoChunk) {
  const auto client = MakeClient("a", 0, PutPath::kDelegate);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
  const uint64_t delegated = Count(Counter::kPutsDelegated);
  ASSERT_GT(delegated, 0U);
  for (int i = 0; i < 10 << 16; ++i) ASSERT_EQ(shard_->Poll(), 0U);
  ASSERT_EQ(Put(*client, "key", "other"), Code::kOk);
  EXPECT_EQ(Count(Counter::kPutsDelegated), delegated + 1);
  for (int i = 0; i < 9; ++i) shard_->Tidy(std::chrono::milliseconds(5));
  ASSERT_EQ(Put(*client, "key", "value"), Code::kOk) << "in idle moments it is";
  EXPECT_EQ(Count(Counter::kPutsDelegated), delegated + 1);
}

// The shard accepts a peer that dies before it is connected. That peer never counts as a client.
TEST_F(PortsTest, ASessionCountsWhenItIsConnected) {
  auto gone = MakeClient("gone", 1);
  ASSERT_TRUE(gone->connections().Connect().ok());
  network_.RunUntil(network_.Now() + std::chrono::seconds(1));
  Admit();
  EXPECT_EQ(shard_->Poll(), 0U) << "accepted, and not connected yet";
  EXPECT_EQ(Count(Counter::kClients), 0U);
  network_.KillNode("gone");
  for (int step = 0; step < 1000; ++step) {
    shard_->Poll();
    if (!network_.Step()) break;
  }
  shard_->Poll();
  EXPECT_EQ(Count(Counter::kClients), 0U);
  EXPECT_EQ(Count(Counter::kViolations), 0U);
  const auto next = MakeClient("next", 1);
  EXPECT_EQ(Put(*next, "key", "value"), Code::kOk);
  EXPECT_EQ(Count(Counter::kClients), 1U);
}

// --- Requests that wait for another client's value

class AwaitedWriterTest : public PortsTest {
 protected:
  // The writer's put has its space and no value yet. The other client's put waits for that value.
  void SetUp() override {
    PortsTest::SetUp();
    writer_ = MakeClient("writer", 0);
    waiter_ = MakeClient("waiter", 1);
    ASSERT_EQ(Put(*waiter_, "other", "v"), Code::kOk);
    const auto done = [this](const Status& status) { written_ = status.code(); };
    ASSERT_TRUE(writer_->Put("key", std::string(3000, 'n'), done).ok());
    ASSERT_TRUE(RunUntil({writer_.get()}, [&] { return Count(Counter::kPutsReserved) == 2; }));
    const auto answered = [this](const Result<uint64_t>& version) { answer_ = version.status().code(); };
    ASSERT_TRUE(waiter_->Put("key", "mine", PutOptions{.if_version = kAbsent}, answered).ok());
    ASSERT_TRUE(RunUntil({waiter_.get()}, [&] { return shard_->parked().awaits_writers(); }));
  }
  // The writer finishes its put, and the shard does no step.
  void FinishWriting() {
    for (int step = 0; step < 10'000 && !written_; ++step) {
      writer_->Poll();
      network_.Step();
    }
    ASSERT_EQ(written_, Code::kOk);
  }

  std::unique_ptr<client::Engine> writer_;
  std::unique_ptr<client::Engine> waiter_;
  std::vector<std::unique_ptr<client::Engine>> others_;
  std::optional<Code> written_;
  std::optional<Code> answer_;
};

TEST_F(AwaitedWriterTest, IsEndedAfterThreeSeconds) {
  shard_->PassTime(std::chrono::hours(1));  // maybe no request waited during this hour
  shard_->Poll();
  EXPECT_EQ(Count(Counter::kOverdue), 0U);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Count(Counter::kOverdue), 0U);
    shard_->PassTime(std::chrono::seconds(1));
    shard_->Poll();
  }
  EXPECT_EQ(Count(Counter::kOverdue), 1U);
  ASSERT_TRUE(RunUntil({waiter_.get()}, [&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_, Code::kOk);
  EXPECT_FALSE(written_.has_value());
}

// The value is complete, but the shard has not looked at it yet.
TEST_F(AwaitedWriterTest, IsNotEndedIfItHasWritten) {
  shard_->PassTime(std::chrono::seconds(1));
  FinishWriting();
  for (int i = 0; i < 4; ++i) {
    shard_->PassTime(std::chrono::seconds(2));
    shard_->Poll();
  }
  EXPECT_EQ(Count(Counter::kOverdue), 0U);
  ASSERT_TRUE(RunUntil({waiter_.get()}, [&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_, Code::kConflict);
}

TEST_F(AwaitedWriterTest, ShardChecksForItsValueAtGrowingIntervals) {
  FinishWriting();
  int polls = 0;
  for (; shard_->parked().awaits_writers(); ++polls) shard_->Poll();
  EXPECT_GT(polls, 30);
  ASSERT_TRUE(RunUntil({waiter_.get()}, [&] { return answer_.has_value(); }));
  EXPECT_EQ(answer_, Code::kConflict);
}

// An idle moment looks only at a part of the other values in flight, and always at the awaited one.
TEST_F(AwaitedWriterTest, ShardChecksForItsValueInIdleMoments) {
  for (int client = 0; client < 4; ++client) {
    others_.push_back(MakeClient("other" + std::to_string(client), 0));
    const auto reserved = Count(Counter::kPutsReserved);
    for (int i = 0; i < 60; ++i) {
      const std::string key = "of " + std::to_string(client) + ", " + std::to_string(i);
      ASSERT_TRUE(others_.back()->Put(key, std::string(50, 'n'), [](const Status&) {}).ok());
    }
    ASSERT_TRUE(RunUntil({others_.back().get()}, [&] { return Count(Counter::kPutsReserved) == reserved + 60; }));
  }
  shard_->Tidy(std::chrono::milliseconds(5));
  EXPECT_TRUE(shard_->parked().awaits_writers());
  FinishWriting();
  EXPECT_GT(shard_->Tidy(std::chrono::milliseconds(5)), 0U);
  EXPECT_FALSE(shard_->parked().awaits_writers());
}

}  // namespace
}  // namespace erda::sim
