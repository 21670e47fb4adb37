// The memory of the two rings of an shm channel: each end sends in one of them, and receives in the other one.
#include "fabric/shm/ring_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace erda::fabric {
namespace {

using shm::Ring;
using shm::RingMemory;

class RingMemoryTest : public testing::TestWithParam<uint32_t> {
 protected:
  // The connecting end makes the memory, and the accepting end maps it.
  RingMemoryTest() : RingMemoryTest(*SharedMemory::Create("rings", RingMemory::Bytes(GetParam()))) {}
  explicit RingMemoryTest(SharedMemory made) : fd_(::dup(made.view().fd)), connecting_(std::move(made), GetParam()) {}

  // Fills a ring to its last place.
  static void Fill(Ring producer, uint32_t first) {
    for (uint32_t i = 0; i < GetParam(); ++i) {
      producer.Push({static_cast<uint32_t>(OpKind::kReceiveImm), first + i, 0, 0}, {});
    }
    EXPECT_FALSE(producer.Publish());
    EXPECT_EQ(producer.Room(), 0U);
  }
  // Checks that the other view of that ring has these messages, in order.
  static void Expect(Ring consumer, uint32_t first) {
    shm::Descriptor descriptor{};
    for (uint32_t i = 0; i < GetParam(); ++i, consumer.Advance()) {
      ASSERT_EQ(consumer.Peek(&descriptor), Ring::Look::kMessage);
      EXPECT_EQ(descriptor.imm, first + i);
    }
  }

  const UniqueFd fd_;
  shm::MemoryMaps maps_;
  const RingMemory connecting_;
};

INSTANTIATE_TEST_SUITE_P(Depths, RingMemoryTest, testing::Values(1, 3, 64));

TEST_P(RingMemoryTest, BothEndsSeeTheSameTwoRings) {
  const uint32_t depth = GetParam();
  const RingMemory accepting(*maps_.Map(fd_, RingMemory::Bytes(depth), true, shm::MemoryMaps::Trust::kPeerMayNotHarm),
                             depth);
  Fill(connecting_.of_connecting_end(), 1000);
  shm::Descriptor descriptor{};
  EXPECT_EQ(accepting.of_accepting_end().Peek(&descriptor), Ring::Look::kEmpty);
  Fill(accepting.of_accepting_end(), 2000);
  Expect(accepting.of_connecting_end(), 1000);
  Expect(connecting_.of_accepting_end(), 2000);
}

}  // namespace
}  // namespace erda::fabric
