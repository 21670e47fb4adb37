// A client that is let in knows the pool's hash seed, and can choose keys that all have one place in the index. The
// keys of others that have the same place are taken all the same (docs/security.md, "Chosen keys").
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
  // Keys with the home of the first of them, in whatever number of blocks up to that of a usual index.
  static std::vector<std::string> Choose(const format::HelloReply& hello, size_t count) {
    const format::Geometry& geometry = hello.geometry;
    const uint64_t blocks = format::UsualIndexSlots(geometry.pool_size, geometry.shards) / geometry.block_slots();
    std::vector<std::string> keys;
    uint64_t first = 0;
    for (uint64_t i = 0; keys.size() < count; ++i) {
      std::string key = "key" + std::to_string(i);
      const uint64_t hash = HashKey(key, hello.hash_seed);
      if (keys.empty()) first = hash;
      const bool same_block = (hash ^ first) % (4 * blocks) == 0;
      const bool same_home = geometry.HomeInBlock(hash) == geometry.HomeInBlock(first);
      const bool same_class = format::Reaches::ClassOf(hash) == format::Reaches::ClassOf(first);
      if (same_block && same_home && same_class) keys.push_back(std::move(key));
    }
    return keys;
  }
};

TEST_F(CrowdTest, AStrangersKeysDoNotKeepOthersOut) {
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

  // What it costs: a window of 256 slots has three more pieces of 64.
  ClientStats before = victim->stats();
  ASSERT_EQ(victim->Get(absent).status().code(), Code::kNotFound);
  EXPECT_EQ(victim->stats().reads - before.reads, 1U + 3 + 3 + 1) << "two looks, three pieces, a reading";
  for (size_t i = 0; i < 200; ++i) ASSERT_TRUE(stranger->Delete(keys[i]).ok()) << i;
  ASSERT_TRUE(victim->Delete(victims).ok());
  ASSERT_TRUE(victim->Put(absent, "comes").ok());
  EXPECT_TRUE(sleeper->Get(absent).ok());
}

}  // namespace
}  // namespace erda
