// Tests that provoke the fences of the shm fabric's rings. Two threads meet at the same instant, again and again. Each
// stores, and then looks at the other's store. A processor lets a look overtake a store, unless a fence is between
// them; then both threads miss each other. The model tests/model/ring_model.py explores every order that a processor
// may choose.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "fabric/fixture.h"
#include "fabric/meeting.h"
#include "fabric/shm/ring.h"

namespace erda::fabric {
namespace {

using shm::Ring;

constexpr uint32_t kRounds = 150'000;

class RingTest : public testing::Test {
 protected:
  static constexpr uint32_t kDepth = 4;
  RingTest() : memory_(*SharedMemory::Create("rings", Ring::Bytes(kDepth) + 4096)) {}
  [[nodiscard]] Ring NewRing() const { return {memory_.bytes().data(), kDepth}; }
  // Returns a word of the consumer's memory, in a separate page.
  [[nodiscard]] std::atomic_ref<uint64_t> word() const {
    return std::atomic_ref(*reinterpret_cast<uint64_t*>(memory_.bytes().last(4096).data()));
  }
  const SharedMemory memory_;
};

TEST_F(RingTest, PublishedMessageIsSeenOrItsConsumerWoken) {
  Ring producer = NewRing();
  Ring consumer = NewRing();
  bool rings = false;
  bool finds = false;
  Meeting(kRounds).Run(
      [&] {
        producer.Push({static_cast<uint32_t>(OpKind::kReceiveImm), 0, 0, 0}, {});
        rings = producer.Publish();
      },
      [&] {
        consumer.BeginSleep();
        Ring::FenceSleep();
        finds = !consumer.IsEmpty();
      },
      [&](uint32_t round) {
        EXPECT_TRUE(rings || finds) << "round " << round << ": a sleeper that nobody wakes";
        shm::Descriptor descriptor{};
        EXPECT_EQ(consumer.Peek(&descriptor), Ring::Look::kMessage);
        consumer.Advance();
        consumer.EndSleep();
        return !HasFailure();
      });
}

TEST_F(RingTest, WriteIsSeenByAConsumerThatLeavesOrItsProducerFindsItGone) {
  Ring producer = NewRing();
  Ring consumer = NewRing();
  bool gone = false;
  uint64_t found = 0;
  uint64_t written = 0;
  Meeting(kRounds).Run(
      [&] {
        word().store(++written, std::memory_order_relaxed);
        gone = producer.ConsumerIsGone(true);
      },
      [&] {
        consumer.Leave();
        found = word().load(std::memory_order_relaxed);
      },
      [&](uint32_t round) {
        EXPECT_TRUE(gone || found == written) << "round " << round << ": an acknowledged Write that came too late";
        std::memset(memory_.bytes().data(), 0, Ring::Bytes(kDepth));
        return !HasFailure();
      });
}

TEST_F(RingTest, PlacingIsSeenByAConsumerThatLeavesOrDoesNotBegin) {
  Ring producer = NewRing();
  Ring consumer = NewRing();
  bool begun = false;
  bool placing = false;
  Meeting(kRounds).Run([&] { begun = producer.BeginPlacing(); },
                       [&] {
                         consumer.Leave();
                         placing = consumer.IsPlacing();
                       },
                       [&](uint32_t round) {
                         EXPECT_TRUE(!begun || placing)
                             << "round " << round << ": a copy into memory that is used again";
                         std::memset(memory_.bytes().data(), 0, Ring::Bytes(kDepth));
                         return !HasFailure();
                       });
}

// The same for a queue: its owner arms it, while a peer posts.
class ArmTest : public FabricTest {};

INSTANTIATE_TEST_SUITE_P(Fabrics, ArmTest, testing::ValuesIn(RealWorlds()), KindName);

TEST_P(ArmTest, ArmedQueueSeesAMessageOrBecomesReadable) {
  Connect();
  bool sleeps = false;
  const WorkRequest message = Unsignaled(WriteImm(client_, 0, 0, 0, 0));
  Meeting(Rounds(kRounds))
      .Run([&] { EXPECT_TRUE(Post(*client_.channel, message).ok()); },
           [&] {
             std::chrono::nanoseconds at_most(0);
             sleeps = server_.queue->Arm(&at_most);
           },
           [&](uint32_t round) {
             pollfd watched{server_.queue->descriptor(), POLLIN, 0};
             if (sleeps) {
               EXPECT_EQ(::poll(&watched, 1, 5000), 1) << "round " << round << ": a sleeper that nobody wakes";
             }
             server_.queue->Disarm();
             server_.Poll();
             EXPECT_EQ(server_.Count(OpKind::kReceiveImm), 1U);
             server_.events.clear();
             return !HasFailure();
           });
}

}  // namespace
}  // namespace erda::fabric
