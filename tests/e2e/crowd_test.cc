// A client that is let in knows the pool's hash seed. So it can choose keys that all have one place in the index. Other
// clients' keys with the same place still find room (docs/security.md, "Chosen keys").
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"
#include "format/index_layout.h"

namespace erda {
namespace {

class CrowdTest : public E2eTest {
 protected:
  // Returns keys with the same home, which splits for keys that stand close together do not part. If no end of the
  // block cuts the window, it has whole pieces of 64 slots on both sides of the home.
  static std::vector<std::string> Choose(const format::HelloReply& hello, size_t count) {
    const format::Geometry& geometry = hello.geometry;
    const uint64_t blocks = format::SparseIndexSlots(geometry.pool_size, geometry.shards) / geometry.block_slots();
    std::vector<std::string> keys;
    uint64_t first = 0;
    for (uint64_t i = 0; keys.size() < count; ++i) {
      std::string key = "key" + std::to_string(i);
      const uint64_t hash = HashKey(key, hello.hash_seed);
      const uint64_t home = geometry.HomeInBlock(hash);
      if (keys.empty() && (home % format::kNeighbourhood != 0 || home > geometry.block_slots() / 2)) continue;
      if (keys.empty()) first = hash;
      const bool same_block = (hash ^ first) % blocks == 0;
      const bool same_home = home == geometry.HomeInBlock(first);
      const bool same_class = format::Reaches::ClassOf(hash) == format::Reaches::ClassOf(first);
      if (same_block && same_home && same_class) keys.push_back(std::move(key));
    }
    return keys;
  }
};

TEST_F(CrowdTest, CollidingKeysOfAStrangerLeaveRoomForOthers) {
  ServerOptions options = Options(PoolKind::kDram);
  options.pool_size = 8 << 20;
  const auto server = Serve(PoolKind::kDram, options);
  const auto keys = Choose(RawPeer(Address()).hello(), 202);
  const std::string& victims = keys[200];
  const std::string& absent = keys[201];

  const auto sleeper = Connect({.cache_entries = 0});
  const auto stranger = Connect();
  const auto victim = Connect({.cache_entries = 0});
  ASSERT_EQ(sleeper->Get(victims).status().code(), Code::kNotFound);
  for (size_t i = 0; i < 200; ++i) ASSERT_TRUE(stranger->Put(keys[i], keys[i]).ok()) << i;

  const Status put = victim->Put(victims, "mine");
  ASSERT_TRUE(put.ok()) << put.ToString();
  for (Client* const reader : {victim.get(), sleeper.get(), stranger.get()}) {
    const auto value = reader->Get(victims);
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_EQ(*value, "mine");
    EXPECT_EQ(reader->Get(absent).status().code(), Code::kNotFound);
    for (size_t i = 0; i < 200; ++i) {
      const auto crowd = reader->Get(keys[i]);
      ASSERT_TRUE(crowd.ok()) << i << ": " << crowd.status().ToString();
      ASSERT_EQ(*crowd, keys[i]);
    }
  }
  const auto page = victim->Scan({.keys = 1000});
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_EQ(page->keys.size(), 201U);

  for (size_t i = 0; i < 200; ++i) ASSERT_TRUE(stranger->Delete(keys[i]).ok()) << i;
  ASSERT_TRUE(victim->Delete(victims).ok());
  ASSERT_TRUE(victim->Put(absent, "comes").ok());
  EXPECT_TRUE(sleeper->Get(absent).ok());
}

// The cost of a miss while the window grows (docs/protocol.md, "A neighbourhood that grows").
TEST_F(CrowdTest, AMissReadsItsWindowInPieces) {
  ServerOptions options = Options(PoolKind::kDram);
  options.pool_size = 4 << 20;
  options.index_entries = format::SparseIndexSlots(options.pool_size, 1);  // so that the crowd makes it no larger
  const auto server = Serve(PoolKind::kDram, options);
  const format::HelloReply hello = RawPeer(Address()).hello();
  ASSERT_EQ(hello.geometry.block_slots(), 2048U);
  const auto keys = Choose(hello, 1026);
  const auto client = Connect({.cache_entries = 0});
  const auto reads_of_miss = [&] {
    const uint64_t before = client->stats().reads;
    EXPECT_EQ(client->Get(keys.back()).status().code(), Code::kNotFound);
    return client->stats().reads - before;
  };
  size_t put = 0;
  uint64_t pieces = 0;  // pieces beyond the neighbourhood
  for (uint64_t window = 64; window <= 2048; window *= 2, pieces = 2 * pieces + 1) {
    for (; put <= window / 2; ++put) ASSERT_TRUE(client->Put(keys[put], "v").ok()) << put;
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(reads_of_miss(), 4 + pieces + (pieces > 0 ? 1 : 0)) << "a window of " << window;
    }
  }
  EXPECT_EQ(put, 1025U);
  for (size_t i = 0; i < put; ++i) ASSERT_TRUE(client->Get(keys[i]).ok()) << i;
}

}  // namespace
}  // namespace erda
