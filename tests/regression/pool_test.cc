// Pools that were damaged between a clean stop and the next start.
#include <fstream>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/log_layout.h"
#include "format/superblock.h"
#include "regression/fixture.h"
#include "tests/format/first_blocks.h"

namespace erda {
namespace {

class PoolTest : public RegressionTest {
 protected:
  static constexpr int kKeys = 50;

  PoolTest() {
    const auto server = Serve(SmallPool());
    const auto client = Connect();
    for (int i = 0; i < kKeys; ++i) EXPECT_TRUE(client->Put(Key(i), Value(i)).ok());
    EXPECT_TRUE(server->Stop().ok());
  }

  [[nodiscard]] ServerOptions SmallPool() const {
    ServerOptions options = FileOptions();
    options.pool_size = 16 << 20;
    return options;
  }
  static std::string Key(int i) { return "key-number-" + std::to_string(i); }
  static std::string Value(int i) { return "value-" + std::to_string(i); }

  [[nodiscard]] std::string ReadPool() const {
    std::ifstream file(Path("pool"), std::ios::binary);
    std::string pool(std::filesystem::file_size(Path("pool")), '\0');
    file.read(pool.data(), static_cast<std::streamsize>(pool.size()));
    EXPECT_TRUE(file.good());
    return pool;
  }
  void WritePool(uint64_t offset, std::string_view bytes) const {
    std::fstream file(Path("pool"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(file.flush().good());
  }
  void FlipBit(uint64_t offset) const {
    const std::string pool = ReadPool();
    ASSERT_LT(offset, pool.size());
    WritePool(offset, std::string(1, static_cast<char>(pool[offset] ^ 1)));
  }
  void DamageKey(int i) const {
    const size_t at = ReadPool().find(Key(i));
    ASSERT_NE(at, std::string::npos);
    FlipBit(at + 2);
  }
};

// The shard took the damaged version for another key's version, and kept the entry. No put could reach the key again.
TEST_F(PoolTest, APutRepairsADamagedKey) {
  DamageKey(7);
  const auto server = Serve(SmallPool());
  const auto client = Connect();
  EXPECT_EQ(client->Get(Key(7)).status().code(), Code::kCorruption);
  const Status put = client->Put(Key(7), "repaired");
  EXPECT_TRUE(put.ok()) << put.ToString();
  const auto value = client->Get(Key(7));
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(*value, "repaired");
  EXPECT_TRUE(client->Delete(Key(7)).ok());
  EXPECT_EQ(client->Get(Key(7)).status().code(), Code::kNotFound);
}

// The entry named a version of another key. The shard took that for a key with the same tag, so the key looked absent,
// and a put gave it a second entry.
TEST_F(PoolTest, AnEntryThatNamesAnotherKeysVersionIsDamageThatAPutRepairs) {
  const std::string pool = ReadPool();
  const auto found = format::FindSuperblock(AsBytes(pool));
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  const format::Geometry& geometry = found->superblock.geometry;
  const auto entry_of = [&](int i) {
    const uint64_t hash = HashKey(Key(i), found->superblock.hash_seed);
    uint64_t at = geometry.FirstSlotOffset(0, format::FirstHome(geometry, hash));
    const auto entry = [&] { return LoadAs<format::IndexEntry>(AsBytes(pool).subspan(at)); };
    while (entry().entry_meta().tag() != format::EntryMeta::TagOf(hash)) at += sizeof(format::IndexEntry);
    return at;
  };
  WritePool(entry_of(7), std::string_view(pool).substr(entry_of(8), sizeof(uint64_t)));
  const auto server = Serve(SmallPool());
  const auto client = Connect();
  EXPECT_EQ(client->Get(Key(7)).status().code(), Code::kCorruption);
  EXPECT_EQ(client->Delete(Key(7)).code(), Code::kCorruption);
  EXPECT_EQ(client->Get(Key(7)).status().code(), Code::kCorruption);
  EXPECT_TRUE(client->Put(Key(7), "repaired").ok());
  const auto value = client->Get(Key(7));
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(*value, "repaired");
  EXPECT_EQ(*client->Get(Key(8)), Value(8));
  EXPECT_EQ(server->stats().keys, uint64_t{kKeys});
}

// Recovery took the first object that did not verify for the end of the log. The server then wrote new objects over the
// good ones after it.
TEST_F(PoolTest, PutsAfterDamageInTheOpenSegmentKeepItsNeighbours) {
  DamageKey(7);
  const auto server = Serve(SmallPool());
  const auto client = Connect();
  for (int i = 0; i < kKeys + 10; ++i) ASSERT_TRUE(client->Put("new-key-xxx-" + std::to_string(i), Value(i)).ok());
  for (int i = 0; i < kKeys; ++i) {
    if (i == 7) continue;
    const auto value = client->Get(Key(i));
    ASSERT_TRUE(value.ok()) << i << ": " << value.status().ToString();
    EXPECT_EQ(*value, Value(i));
  }
  EXPECT_EQ(client->Get(Key(7)).status().code(), Code::kCorruption);
}

// The pool opened. The region counted as empty, or the first delete in it ended the server.
TEST_F(PoolTest, ADamagedFirstSegmentOfALinkedRegionIsFoundWhenThePoolIsOpened) {
  const std::string pool = ReadPool();
  const auto found = format::FindSuperblock(AsBytes(pool));
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  const format::Geometry& geometry = found->superblock.geometry;
  uint32_t damaged = 0;
  for (uint32_t region = 0; region < geometry.regions(); ++region) {
    const auto word =
        LoadAs<uint64_t>(AsBytes(pool).subspan(format::kRegionTableOffset + region * sizeof(uint64_t), 8));
    if (!format::RegionWord(word).linked()) continue;
    ++damaged;
    const uint64_t at = geometry.RegionOffset(region);
    FlipBit(at);
    const auto server = Server::Open(SmallPool());
    EXPECT_EQ(server.status().code(), Code::kCorruption) << region << ": " << server.status().ToString();
    FlipBit(at);
  }
  EXPECT_GT(damaged, 0U);
  const auto server = Serve(SmallPool());  // none of these refusals changed the pool
  EXPECT_EQ(*Connect()->Get(Key(3)), Value(3));
}

// The server had recovered the shards before the damaged one when it found the damage.
TEST_F(PoolTest, RefusedPoolWithADamagedShardIsUnchanged) {
  std::filesystem::remove(Path("pool"));
  ServerOptions options = SmallPool();
  options.shards = 2;
  {
    const auto server = Serve(options);
    const auto client = Connect();
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(client->Put(Key(i), Value(i)).ok());
    std::filesystem::copy_file(Path("pool"), Path("as-a-crash-leaves-it"));
  }
  std::filesystem::rename(Path("as-a-crash-leaves-it"), Path("pool"));

  // The first shard gets something to recover, and the second one gets damage.
  std::string pool = ReadPool();
  const auto found = format::FindSuperblock(AsBytes(pool));
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  const format::Geometry& geometry = found->superblock.geometry;
  const auto word_at = [&](uint64_t at) { return LoadAs<uint64_t>(AsBytes(pool).subspan(at, sizeof(uint64_t))); };
  const auto place_of = [&](uint64_t at) { return format::EntryWord(word_at(at)).new_address().raw(); };
  uint64_t newest = geometry.FirstSlotOffset(0, 0);
  for (uint64_t at = newest; at < geometry.FirstSlotOffset(1, 0); at += sizeof(format::IndexEntry)) {
    if (place_of(at) > place_of(newest)) newest = at;
  }
  FlipBit(newest);  // the entry is not settled any more
  uint32_t region = geometry.RegionOf(1, 0);
  while (!format::RegionWord(word_at(format::kRegionTableOffset + region * sizeof(uint64_t))).linked()) {
    region += geometry.shards;
  }
  FlipBit(geometry.RegionOffset(region));
  pool = ReadPool();
  const auto refused = Server::Open(options);
  EXPECT_EQ(refused.status().code(), Code::kCorruption) << refused.status().ToString();
  EXPECT_TRUE(ReadPool() == pool);

  FlipBit(geometry.RegionOffset(region));
  const auto server = Serve(options);
  ASSERT_TRUE(server->recovery().has_value());
  EXPECT_EQ(server->recovery()->settled, 1U);
  EXPECT_GT(server->recovery()->time.count(), 0);
  const auto client = Connect();
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(*client->Get(Key(i)), Value(i));
  // The shard counts its keys beside its work, in idle moments.
  EXPECT_TRUE(WaitUntil([&] { return server->stats().keys == uint64_t{kKeys}; })) << server->stats().keys;
}

// Versions began at 0 again, below the stored versions. Those then counted as newer.
TEST_F(PoolTest, LostVersionLimitIsFoundWhenThePoolIsOpened) {
  constexpr uint64_t kAt = format::kShardRecordsOffset + offsetof(format::ShardRecord, version_limit);
  WritePool(kAt, std::string(sizeof(uint64_t), '\0'));
  const auto server = Server::Open(SmallPool());
  EXPECT_EQ(server.status().code(), Code::kCorruption) << server.status().ToString();
}

// The server created the pool first and left the file there. The corrected command then found a pool of the wrong kind.
TEST_F(PoolTest, ImpossibleAddressLeavesNoPool) {
  ServerOptions options = Options(Path("new-pool"));
  options.listen = {"shm:" + Path("no-such-folder/socket")};
  EXPECT_FALSE(Server::Open(options).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("new-pool")));
  options.listen = {Address(), "shm:" + Path("no-such-folder/socket")};
  EXPECT_FALSE(Server::Open(options).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("new-pool")));
}

}  // namespace
}  // namespace erda
