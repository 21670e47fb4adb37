// Conformance: the guarantees for an owner that destroys a channel, and then uses the memory for something else.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/random.h"
#include "fabric/child.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

class FenceTest : public FabricTest {};

INSTANTIATE_TEST_SUITE_P(Fabrics, FenceTest, testing::ValuesIn(AllWorlds()), KindName);

TEST_P(FenceTest, NothingLandsAfterTheFence) {
  for (size_t wait = 0; wait < 30; ++wait) {
    Connect();
    Put(client_.bytes(0, 4096), Pattern(4096, wait));
    ASSERT_TRUE(Post(*client_.channel, Unsignaled(Write(client_, 0, 4096, 0))).ok());
    ASSERT_TRUE(Post(*client_.channel, Write(client_, 0, 4096, 4096)).ok());
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    ASSERT_TRUE(PumpUntil([&] { return server_.channel->Fence(); }));
    server_.channel.reset();
    Put(server_.bytes(0, 8192), std::string(8192, 'n'));
    (void)Post(*client_.channel, Write(client_, 0, 4096, 0));  // It may not know yet.
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
    Settle();
    EXPECT_TRUE(server_.text(0, 8192) == std::string(8192, 'n')) << "wait " << wait;
    client_.channel.reset();
    server_.events.clear();
    client_.events.clear();
  }
}

TEST_P(FenceTest, FencedChannelReportsNothingMore) {
  for (size_t wait = 0; wait < 30; ++wait) {
    Connect();
    ASSERT_TRUE(Post(*client_.channel, Unsignaled(Write(client_, 0, 4096, 0))).ok());
    ASSERT_TRUE(Post(*client_.channel, WriteImm(client_, 0, 100, 0, 7)).ok());
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    server_.Poll();
    ASSERT_TRUE(Post(*server_.channel, Write(server_, 0, 100, 0)).ok());
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    server_.events.clear();
    // Over some fabrics Fence is true at once. Then there is no time in which the channel could report anything.
    while (!server_.channel->Fence()) {
      server_.Poll();
      EXPECT_TRUE(server_.events.empty()) << "wait " << wait;
      EXPECT_FALSE(server_.channel->connected());
      EXPECT_EQ(Post(*server_.channel, Write(server_, 0, 100, 0)).code(), Code::kUnavailable);
      world_->Advance();
    }
    server_.channel.reset();
    Settle();
    EXPECT_TRUE(server_.events.empty()) << "wait " << wait;
    client_.channel.reset();
    client_.events.clear();
  }
}

class RealFenceTest : public FabricTest {
 protected:
  static constexpr size_t kWriteBytes = kMemoryBytes / 4;

  // Waits until Fence returns true. Returns false if that takes too long.
  [[nodiscard]] bool FenceServer() const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!server_.channel->Fence()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, RealFenceTest, testing::ValuesIn(RealWorlds()), KindName);

// The peer writes large values in a separate thread, so that it is nearly always in the middle of one.
TEST_P(RealFenceTest, APeerInTheMiddleOfAWriteEndsIt) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    Connect();
    std::atomic<bool> writes = false;
    std::thread writer([&] {
      Put(client_.bytes(0, kWriteBytes), std::string(kWriteBytes, 'c'));
      std::array<Completion, 8> completions;
      while (client_.channel->error().ok() && Post(*client_.channel, Write(client_, 0, kWriteBytes, 0)).ok()) {
        writes = true;
        client_.queue->Poll(completions);
      }
    });
    while (!writes) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random.Uniform(2000)));
    EXPECT_TRUE(FenceServer());
    server_.channel.reset();
    Put(server_.bytes(0, kWriteBytes), std::string(kWriteBytes, 'n'));
    writer.join();
    ASSERT_TRUE(server_.text(0, kWriteBytes) == std::string(kWriteBytes, 'n')) << "round " << round;
    Settle();
    client_.channel.reset();
    server_.events.clear();
    client_.events.clear();
  }
}

// A peer that is stopped there holds up the fence. A peer that dies there does not.
TEST_P(RealFenceTest, APeerThatDiesInTheMiddleOfAWriteIsNotWaitedFor) {
  bool waited = false;
  for (int round = 0; round < 20; ++round) {
    Child child(Child::kWriter, listener_->address());
    const auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    Region* const offer[] = {server_.region.get()};
    auto channel = incoming->Accept(Offer(server_, offer));
    ASSERT_TRUE(channel.ok());
    server_.channel = *std::move(channel);
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceive)) << "it begins";
    child.Stop();
    server_.events.clear();
    ASSERT_TRUE(Post(*server_.channel, Write(server_, 0, 100, 0)).ok());  // A completion that the test does not poll.
    if (!server_.channel->Fence()) {
      waited = true;
      server_.Poll();
      EXPECT_TRUE(server_.events.empty()) << "it says nothing more";
      for (int i = 0; i < 100; ++i) EXPECT_FALSE(server_.channel->Fence());
    }
    child.Kill();
    EXPECT_TRUE(FenceServer());
    server_.channel.reset();
    server_.events.clear();
  }
  // Over a network the device places arriving bytes, and its owner stops that at once.
  EXPECT_EQ(waited, GetParam().name == "shm");
}

}  // namespace
}  // namespace erda::fabric
