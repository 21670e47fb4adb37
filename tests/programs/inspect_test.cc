// erda-inspect on the pools of a real erda-server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/superblock.h"
#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

class InspectTest : public ProgramsTest {
 protected:
  Ended Inspect(const Words& more = {}) const {
    Words arguments = {Pool()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run("erda-inspect", arguments);
  }
  // Checks the exit code, and that stderr is empty.
  nlohmann::json Json(int code, const Words& more = {}) const {
    Words arguments = {"--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = Inspect(arguments);
    EXPECT_EQ(ended.code, code);
    EXPECT_EQ(ended.err, "");
    auto json = nlohmann::json::parse(ended.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << ended.out;
    return json;
  }
  void Kill(Process& server) const {
    server.Signal(SIGKILL);
    EXPECT_EQ(server.Wait().code, 128 + SIGKILL);
  }
};

TEST_F(InspectTest, CleanPoolIsReportedAsSound) {
  const auto server = StartServer({"--shards", "2"});
  for (int i = 0; i < 20; ++i) ExpectFine(Cli({"put", "key" + std::to_string(i), "value"}));
  ExpectFine(Cli({"put", "key0", "another"}));
  ExpectFine(Cli({"del", "key1"}));
  StopServer(*server);

  const std::string bytes = ReadFile(Pool());
  const auto text = Inspect({"--verify"});
  ExpectFine(text);
  for (const char* part : {"\nclosed cleanly\n", "superblock A  counts: generation 3, clean\n",
                           "superblock B  older: generation 2, in use\n", "\nusable        92.4 % of the pool,",
                           "shard 1\n", "\nno damage\n"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  }
  const auto json = Json(0, {"--verify"});
  EXPECT_TRUE(ReadFile(Pool()) == bytes) << "the pool was changed";
  EXPECT_EQ(json["pool"], Pool());
  EXPECT_EQ(json["needs_recovery"], false);
  EXPECT_EQ(json["values_verified"], true);
  EXPECT_EQ(json["damage_count"], 0);
  EXPECT_TRUE(json["damage"].is_array());
  EXPECT_EQ(json["superblocks"]["a"]["state"], "counts");
  EXPECT_EQ(json["superblocks"]["a"]["generation"], 3);
  EXPECT_EQ(json["superblocks"]["a"]["clean"], true);
  EXPECT_EQ(json["superblocks"]["a"]["format_version"], format::kFormatVersion);
  EXPECT_EQ(json["superblocks"]["b"]["clean"], false);
  EXPECT_EQ(json["superblocks"]["b"]["uuid"].get<std::string>().size(), 32U);
  EXPECT_EQ(json["geometry"]["shards"], 2);
  EXPECT_EQ(json["geometry"]["pool_size"], 64 << 20);
  const auto geometry = format::ChooseGeometry({.pool_size = 64 << 20, .shards = 2});
  EXPECT_DOUBLE_EQ(json["geometry"]["usable_share"], format::UsableShare(*geometry));
  ASSERT_EQ(json["shards"].size(), 2U);
  uint64_t keys = 0;
  uint64_t verified = 0;
  uint64_t dead = 0;
  for (const auto& shard : json["shards"]) {
    EXPECT_EQ(shard["keys"], shard["used_slots"]);
    EXPECT_EQ(shard["keys"], shard["keys_at_close"]);
    EXPECT_EQ(shard["in_flight"]["total"], 0);
    EXPECT_EQ(shard["log"]["live_bytes"].get<uint64_t>() + shard["log"]["dead_bytes"].get<uint64_t>(),
              shard["log"]["object_bytes"]);
    EXPECT_EQ(shard["regions"]["linked"], 1);
    ASSERT_EQ(shard["heads"].size(), 1U);
    for (const auto& head : shard["heads"]) EXPECT_EQ(head["segments"]["open"], 1);
    keys += shard["keys"].get<uint64_t>();
    verified += shard["verified"]["objects"].get<uint64_t>();
    dead += shard["log"]["dead_bytes"].get<uint64_t>();
  }
  EXPECT_EQ(keys, 19U);
  EXPECT_EQ(verified, 19U);
  EXPECT_EQ(dead, 2U * 48);
}

// With the seed, an attacker could choose keys that share a place.
TEST_F(InspectTest, NoProgramPrintsTheHashSeed) {
  const auto server = StartServer({"--log-level", "debug", "--shards", "2"});
  std::string said;
  const auto hear = [&said](const Ended& ended) { said += ended.out + ended.err; };
  hear(Cli({"put", "key", "value"}));
  for (const Words& words : {Words{"stats"}, Words{"stats", "--json"}, Words{"ping"}, Words{"scan", "--json"}}) {
    hear(Cli(words));
  }
  ExpectFine(Cli({"dump", Path("dump")}));
  said += ReadFile(Path("dump"));
  server->Signal(SIGTERM);
  hear(server->Wait());
  for (const Words& words : {Words{}, Words{"--json"}, Words{"--verify", "--json"}}) hear(Inspect(words));
  for (const Words& words : {Words{"info"}, Words{"info", "--json"}, Words{"check"}, Words{"check", "--json"}}) {
    Words arguments = words;
    arguments.push_back(Pool());
    hear(Run("erda-pool", arguments));
  }
  EXPECT_NE(said.find("uuid"), std::string::npos) << said;
  const std::string pool = ReadFile(Pool());
  const auto superblock = LoadAs<format::Superblock>(AsBytes(pool).subspan(format::kSuperblockOffsets[0]));
  for (const uint64_t half : superblock.hash_seed) {
    EXPECT_NE(half, 0U);
    EXPECT_EQ(said.find(AsString(BytesOf(half))), std::string::npos);
    std::string in_order;
    for (const std::byte byte : BytesOf(half)) in_order += fmt::format("{:02x}", static_cast<unsigned>(byte));
    for (const std::string& form : {std::to_string(half), fmt::format("{:x}", half), in_order}) {
      EXPECT_EQ(said.find(form), std::string::npos) << form;
    }
  }
}

TEST_F(InspectTest, PoolOfARunningServerIsRefused) {
  const auto server = StartServer();
  ExpectRefused(Inspect(), 1, Pool() + ": a server has it open");
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
  ExpectFine(Inspect());
}

TEST_F(InspectTest, KilledServersPoolNeedsRecovery) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  Kill(*server);
  const std::string bytes = ReadFile(Pool());
  const auto text = Inspect();
  ExpectFine(text);
  EXPECT_NE(text.out.find("\nnot closed cleanly: it needs recovery"), std::string::npos) << text.out;
  EXPECT_EQ(Json(0)["needs_recovery"], true);
  EXPECT_TRUE(ReadFile(Pool()) == bytes) << "the pool was changed";
  const auto next = StartServer();
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
}

TEST_F(InspectTest, DamageIsNamedByKeyAndHasItsExitCode) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "damaged one\n", "seventeen"}));
  ExpectFine(Cli({"put", "sound one", "eighteen"}));
  StopServer(*server);
  Damage("seventeen");
  ExpectFine(Inspect());  // Only --verify sees that.
  const auto text = Inspect({"--verify"});
  EXPECT_EQ(text.code, 3);
  EXPECT_NE(text.out.find("damage: 1\n  shard 0: the value is damaged (key damaged one\\x0a, slot "), std::string::npos)
      << text.out;
  const auto json = Json(3, {"--verify"});
  EXPECT_EQ(json["damage_count"], 1);
  ASSERT_EQ(json["damage"].size(), 1U);
  EXPECT_EQ(json["damage"][0]["key"], "damaged one\\x0a");
  EXPECT_EQ(json["damage"][0]["what"], "the value is damaged");
  EXPECT_EQ(json["damage"][0]["shard"], 0);
  EXPECT_TRUE(json["damage"][0]["slot"].is_number_unsigned());
  EXPECT_TRUE(json["damage"][0]["address"].is_number_unsigned());
  EXPECT_EQ(Json(3, {"--verify", "--list", "0"})["damage"].size(), 0U);

  Damage("sound one");
  EXPECT_EQ(Json(3)["damage"][0]["key"], nullptr);
}

TEST_F(InspectTest, DamagedSuperblockCopiesAreReported) {
  MakePool();
  std::string bytes = ReadFile(Pool());
  bytes[format::kSuperblockOffsets[1]] ^= 1;
  WriteFile(Pool(), bytes);
  const auto json = Json(0);
  EXPECT_EQ(json["superblocks"]["b"]["state"], "not valid");
  EXPECT_EQ(json["superblocks"]["b"].size(), 1U);
  EXPECT_EQ(json["needs_recovery"], true);
  bytes[20] ^= 1;
  WriteFile(Pool(), bytes);
  ExpectRefused(Inspect(), 1, Pool());
}

TEST_F(InspectTest, OtherFilesAreRefused) {
  ExpectRefused(Inspect(), 1, Pool() + ": No such file or directory");
  for (const std::string& content :
       {std::string(), std::string("text"), std::string(1 << 20, '\0'), std::string(100'000, 'x')}) {
    WriteFile(Pool(), content);
    ExpectRefused(Inspect({"--verify"}), 1, Pool());
    EXPECT_EQ(ReadFile(Pool()), content);
  }
  for (const char* path : {"/", "/dev/null", "/dev/zero", "/dev/tty"}) {
    ExpectRefused(Run("erda-inspect", {path}), 1, path);
  }
  std::filesystem::remove(Pool());
  MakePool();
  std::filesystem::resize_file(Pool(), 32 << 20);
  ExpectRefused(Inspect(), 1, "it was made with 67108864 bytes and now has 33554432");
}

TEST_F(InspectTest, ReadingRightsAreEnough) {
  MakePool();
  std::filesystem::permissions(Pool(), std::filesystem::perms(0400));
  ExpectFine(Run("erda-inspect", {Pool()}, "", Rights::kAsAnyone));
  std::filesystem::permissions(Pool(), std::filesystem::perms(0000));
  ExpectRefused(Run("erda-inspect", {Pool()}, "", Rights::kAsAnyone), 1, Pool());
}

TEST_F(InspectTest, BadUsageAndHelpHaveTheirExitCodes) {
  const std::vector<Words> bad = {{}, {"--frobnicate", Pool()}, {Pool(), "another"}, {"--list", "many", Pool()}};
  for (const Words& arguments : bad) ExpectRefused(Run("erda-inspect", arguments), 2, "erda-inspect: ");
  MakePool();
  const std::string command = BinDir() + "/erda-inspect " + Pool() + " > /dev/full";
  ExpectRefused(Process({"/bin/sh", "-c", command}).Wait(), 1, "stdout");
}

}  // namespace
}  // namespace erda
