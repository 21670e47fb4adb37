// One shard that is reached on two fabrics at once.
#include "sim/ports.h"

namespace erda::sim {
namespace {

using format::Counter;

TEST_F(PortsTest, ClientsOfEitherSeeWhatTheOtherPut) {
  const auto first = MakeClient("a", 0);
  const auto second = MakeClient("b", 1);
  EXPECT_EQ(Put(*first, "key", "of the first"), Code::kOk);
  EXPECT_EQ(Get(*second, "key"), "of the first");
  EXPECT_EQ(Put(*second, "key", "of the second"), Code::kOk);
  EXPECT_EQ(Get(*first, "key"), "of the second");
  EXPECT_EQ(Count(Counter::kClients), 2U);
}

// The client of one port dies with a put under way: that one is taken back, and nothing of the other's.
TEST_F(PortsTest, WhoDiesOnOnePortLeavesTheOtherAlone) {
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

// A busy port does not keep the other waiting: each Poll looks at both.
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

// A shard that looks for work all the time, and finds none, looks as often in a millisecond as a busy one in a second.
TEST_F(PortsTest, PollsInVainTakeNoChunkBack) {
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

// A peer that the shard accepted, and that was gone before it could be connected, never counts.
TEST_F(PortsTest, ASessionCountsWhenItIsConnected) {
  auto gone = MakeClient("gone", 1);
  ASSERT_TRUE(gone->Connect().ok());
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

}  // namespace
}  // namespace erda::sim
