// The pools that erda-server refuses.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "format/superblock.h"
#include "programs/fixture.h"

namespace erda {
namespace {

namespace fs = std::filesystem;

class PoolTest : public ProgramsTest {};

TEST_F(PoolTest, PoolThatCannotBeMadeLeavesNoFile) {
  const std::vector<Words> bad = {{},
                                  {"--size", "1"},
                                  {"--size", "4096"},
                                  {"--size", "64M", "--shards", "1000"},
                                  {"--size", "64M", "--region-size", "3M"},
                                  {"--size", "64M", "--region-size", "64M"},
                                  {"--size", "64M", "--segment-size", "3000"},
                                  {"--size", "64M", "--region-size", "1M", "--segment-size", "2M"},
                                  {"--size", "64M", "--index-entries", "100000000"}};
  for (const Words& more : bad) {
    Words arguments = {"--pool", Pool(), "--listen", Address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ExpectRefused(ServerWith(arguments), 2, "erda-server: ");
    EXPECT_FALSE(fs::exists(Pool()));
  }
}

// Files that are no pool, or no longer one.
class BadPoolTest : public ProgramsTest {
 protected:
  // Returns a good pool's bytes with a change in each of its superblocks.
  std::string PoolWith(const std::function<void(format::Superblock&)>& change) {
    MakePool();
    std::string bytes = ReadFile(Pool());
    for (const uint64_t offset : format::kSuperblockOffsets) {
      format::Superblock superblock;
      std::memcpy(&superblock, &bytes.at(offset), sizeof(superblock));
      change(superblock);
      std::memcpy(&bytes.at(offset), &superblock, sizeof(superblock));
    }
    return bytes;
  }

  // Checks that the server refuses a pool of these bytes, gives the reason, names the file, and leaves it as it is.
  void ExpectPoolRefused(const std::string& bytes, const std::string& reason) {
    WriteFile(Pool(), bytes);
    for (const Words& size : {Words{}, Words{"--size", std::to_string(bytes.size())}}) {
      Words arguments = {"--pool", Pool(), "--listen", Address()};
      arguments.insert(arguments.end(), size.begin(), size.end());
      const auto ended = ServerWith(arguments);
      EXPECT_TRUE(ended.code == 1 || ended.code == 2) << ended.code;
      ExpectRefused(ended, ended.code, Pool());
      ExpectRefused(ended, ended.code, reason);
    }
    EXPECT_TRUE(ReadFile(Pool()) == bytes) << "the file was changed";
  }
};

TEST_F(BadPoolTest, RandomBytesAreRefused) {
  Random random(1);
  std::string bytes(8 << 20, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  ExpectPoolRefused(bytes, "not an Erda pool");
}

TEST_F(BadPoolTest, FewBytesOfTextAreRefused) {
  ExpectPoolRefused("Not a pool, but dear to someone.\n", "not an Erda pool");
}

TEST_F(BadPoolTest, EmptyFileIsRefused) { ExpectPoolRefused("", "erda-server: "); }

TEST_F(BadPoolTest, ZeroesAreRefused) { ExpectPoolRefused(std::string(8 << 20, '\0'), "not an Erda pool"); }

TEST_F(BadPoolTest, AnotherFormatVersionIsRefused) {
  ExpectPoolRefused(PoolWith([](format::Superblock& superblock) { superblock.format_version += 41; }), "version");
}

TEST_F(BadPoolTest, AnotherMagicIsRefused) {
  ExpectPoolRefused(PoolWith([](format::Superblock& superblock) { superblock.magic ^= 1; }), "not an Erda pool");
}

TEST_F(BadPoolTest, WrongChecksumIsRefused) {
  ExpectPoolRefused(PoolWith([](format::Superblock& superblock) { superblock.crc ^= 1; }), "checksum");
  fs::remove(Pool());
  ExpectPoolRefused(PoolWith([](format::Superblock& superblock) { superblock.geometry.index_slots += 1; }), "checksum");
}

TEST_F(BadPoolTest, TruncatedPoolIsRefused) {
  MakePool();
  const std::string bytes = ReadFile(Pool());
  ExpectPoolRefused(bytes.substr(0, bytes.size() / 2), std::to_string(bytes.size()));
  ExpectPoolRefused(bytes.substr(0, 5000), "erda-server: ");
}

// The file may have room for a growth that did not happen.
TEST_F(BadPoolTest, BytesAfterThePoolDoNoHarm) {
  MakePool();
  const std::string bytes = ReadFile(Pool());
  WriteFile(Pool(), bytes + std::string(4096, 'x'));
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
  EXPECT_EQ(ReadFile(Pool()).substr(bytes.size()), std::string(4096, 'x'));
}

TEST_F(BadPoolTest, FolderIsRefused) {
  fs::create_directory(Pool());
  const auto ended = ServerWith({"--pool", Pool(), "--size", "64M", "--listen", Address()});
  EXPECT_NE(ended.code, 0);
  ExpectRefused(ended, ended.code, Pool());
}

TEST_F(PoolTest, ExistingPoolIsNotOpenedWithOtherWishes) {
  MakePool();
  const std::string bytes = ReadFile(Pool());
  for (const Words& more : {Words{"--size", "32M"}, Words{"--shards", "2"}}) {
    Words arguments = {"--pool", Pool(), "--listen", Address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ExpectRefused(ServerWith(arguments), 2, Pool());
  }
  EXPECT_TRUE(ReadFile(Pool()) == bytes) << "the file was changed";
}

TEST_F(PoolTest, PoolThatAnotherServerHasOpenIsRefused) {
  const auto server = StartServer();
  ExpectRefused(ServerWith({"--pool", Pool(), "--size", "64M", "--listen", "shm:" + Path("second")}), 1, Pool());
  ExpectFine(Cli({"put", "key", "value"}));
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  StopServer(*server);
}

TEST_F(PoolTest, PoolInAFolderThatDoesNotExistIsRefused) {
  const std::string pool = Path("nowhere/pool");
  const auto ended = ServerWith({"--pool", pool, "--size", "64M", "--listen", Address()});
  EXPECT_NE(ended.code, 0);
  ExpectRefused(ended, ended.code, pool);
}

TEST_F(PoolTest, PoolWithoutTheRightsIsRefused) {
  const std::string folder = Path("folder");
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms(0555));
  const Words in_folder = {"--pool", folder + "/pool", "--size", "64M", "--listen", Address()};
  ExpectRefused(ServerWith(in_folder, Rights::kAsAnyone), 1, folder + "/pool");

  MakePool();
  const std::string bytes = ReadFile(Pool());
  fs::permissions(Pool(), fs::perms(0444));
  ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address()}, Rights::kAsAnyone), 1, Pool());
  EXPECT_TRUE(ReadFile(Pool()) == bytes) << "the file was changed";
}

}  // namespace
}  // namespace erda
