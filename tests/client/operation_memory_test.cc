// The registered memory of operations, and of the requests that a client sends for itself.
#include "client/operation_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "client/hand_fabric.h"

namespace erda::client {
namespace {

TEST(OperationMemoryTest, PlacesAreRegisteredAndDoNotOverlap) {
  constexpr OpIndex kOperations = 3;
  HandFabric fabric;
  OperationMemory memory;
  ASSERT_TRUE(memory.Prepare(fabric, kOperations).ok());
  std::vector<std::span<std::byte>> places;
  for (OpIndex i = 0; i < kOperations; ++i) places.push_back(memory.Of(i));
  places.push_back(memory.report());
  for (uint32_t shard = 0; shard < format::kShardsMax; ++shard) places.push_back(memory.chunk_request(shard));
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_TRUE(fabric.Knows(places[i])) << i;
    if (i > 0) {
      EXPECT_LE(places[i - 1].data() + places[i - 1].size(), places[i].data()) << i;
    }
  }
  EXPECT_GE(memory.report().size(), sizeof(format::Request) + format::kKeyBytesMax) << "a request and the longest key";
}

class ProvideTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory_.Prepare(fabric_, 1).ok());
    op_.memory = memory_.Of(0);
  }

  HandFabric fabric_;
  OperationMemory memory_;
  Operation op_;
};

TEST_F(ProvideTest, MessageThatFitsStaysInTheOperationsMemory) {
  ASSERT_TRUE(memory_.Provide(op_, kMessageBytes).ok());
  EXPECT_FALSE(op_.sends_own_memory());
  EXPECT_EQ(op_.message().size(), kMessageBytes);
}

TEST_F(ProvideTest, LargerMessageGetsRegisteredMemory) {
  ASSERT_TRUE(memory_.Provide(op_, kMessageBytes + 1).ok());
  EXPECT_TRUE(op_.sends_own_memory());
  EXPECT_EQ(op_.message().size(), kMessageBytes + 1);
  EXPECT_TRUE(fabric_.Knows(op_.message()));
}

TEST_F(ProvideTest, MessageLeavesABufferThatIsTooSmall) {
  std::vector<std::byte> buffer(64);
  op_.in_buffer = buffer;
  ASSERT_TRUE(memory_.Provide(op_, 64).ok());
  EXPECT_EQ(op_.message().data(), buffer.data());
  ASSERT_TRUE(memory_.Provide(op_, 65).ok());
  EXPECT_EQ(op_.message().data(), op_.memory.data() + kMessageAt) << "it fits into the operation's memory";
}

}  // namespace
}  // namespace erda::client
