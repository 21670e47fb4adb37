// The links of one client, and the pool that their servers described.
#include "client/links.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/hash.h"
#include "client/hand_fabric.h"

namespace erda::client {
namespace {

class LinksTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(links_.Prepare().ok()); }
  void TearDown() override { links_.Clear(); }

  // Connects the first link to a server with this pool. Returns true if the pool is another one than before.
  bool Learn(uint8_t uuid, uint32_t shards, uint64_t pool_bytes = 64 << 20) {
    format::HelloReply hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.slots = 1;
    hello.slot_bytes = 4096;
    hello.pool_uuid.fill(uuid);
    hello.geometry = *format::ChooseGeometry({64 << 20, shards, 1 << 20, 256 << 10, 0});
    if (pool_bytes != 64 << 20) hello.geometry = *format::GrownGeometry(hello.geometry, pool_bytes);
    const auto data = BytesOf(hello);
    fabric_.peer_data.assign(data.begin(), data.end());
    fabric_.peer_regions.assign(4, {hello.geometry.pool_size, fabric::Access::kRemoteReadWrite});
    Link& link = *links_[0];
    EXPECT_TRUE(link.Connect(1).ok());
    EXPECT_TRUE(link.OnConnected(Nanoseconds(0), false).ok());
    const bool is_other = links_.Learn(link);
    fabric_.posted.clear();
    (void)link.Close();
    return is_other;
  }

  HandFabric fabric_;
  Links links_{fabric_, "hand:server", 1};
};

TEST_F(LinksTest, OneLinkExistsBeforeThePoolIsKnown) {
  EXPECT_FALSE(links_.pool().is_known);
  EXPECT_EQ(links_.size(), 1U);
  Operation op;
  op.key_hash = 12345;
  EXPECT_EQ(&links_.Of(op), links_[0].get());
  EXPECT_EQ(links_.pool().ValueBytesMax(3), 0U);
}

TEST_F(LinksTest, FirstHelloMakesALinkForEachShard) {
  EXPECT_TRUE(Learn(1, 3));
  ASSERT_EQ(links_.size(), 3U);
  for (uint32_t shard = 0; shard < 3; ++shard) EXPECT_EQ(links_[shard]->shard(), shard);
  for (const uint64_t low : {uint64_t{0}, uint64_t{1} << 31, uint64_t{UINT32_MAX}}) {
    EXPECT_EQ(links_.OfKey(low).shard(), links_.pool().geometry.ShardOf(low));
  }
}

TEST_F(LinksTest, OperationOfAShardUsesThatShardsLink) {
  EXPECT_TRUE(Learn(1, 3));
  Operation op;
  op.shard = 2;
  EXPECT_EQ(links_.Of(op).shard(), 2U);
}

TEST_F(LinksTest, GrownPoolIsStillTheSamePool) {
  EXPECT_TRUE(Learn(1, 2));
  const uint64_t before = links_.pool().geometry.pool_size;
  EXPECT_FALSE(Learn(1, 2));
  EXPECT_FALSE(Learn(1, 2, 128 << 20));
  EXPECT_GT(links_.pool().geometry.pool_size, before);
}

TEST_F(LinksTest, OtherPoolWithFewerShardsKeepsTheLinks) {
  EXPECT_TRUE(Learn(1, 3));
  const Link* const last = links_[2].get();
  EXPECT_TRUE(Learn(2, 1));
  EXPECT_EQ(links_.size(), 1U);
  EXPECT_EQ(links_.all().size(), 3U) << "operations may still point at them";
  EXPECT_TRUE(Learn(1, 3));
  EXPECT_EQ(links_[2].get(), last);
}

TEST_F(LinksTest, ForgottenPoolCountsAsAnotherOneAtTheNextHello) {
  EXPECT_TRUE(Learn(1, 2));
  links_.ForgetPool();
  EXPECT_EQ(links_.size(), 1U);
  EXPECT_TRUE(Learn(1, 2));
}

}  // namespace
}  // namespace erda::client
