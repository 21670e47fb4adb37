// erda-pool, and the use of its pools by erda-server.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "format/geometry.h"
#include "format/superblock.h"
#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

namespace fs = std::filesystem;

class ErdaPoolTest : public ProgramsTest {
 protected:
  Ended Do(const std::string& command, const Words& more = {}) const {
    Words arguments = {command, Pool()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run("erda-pool", arguments);
  }
  // Checks the exit code, and that stderr is empty.
  nlohmann::json Json(int code, const std::string& command, Words more = {}) const {
    more.emplace_back("--json");
    const Ended ended = Do(command, more);
    EXPECT_EQ(ended.code, code);
    EXPECT_EQ(ended.err, "");
    auto json = nlohmann::json::parse(ended.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << ended.out;
    return json;
  }
};

TEST_F(ErdaPoolTest, ServerServesACreatedPool) {
  const Words cut = {"--size",         "64M",  "--shards",        "2",    "--region-size", "1M",
                     "--segment-size", "256K", "--index-entries", "10000"};
  const auto made = Do("create", cut);
  ExpectFine(made);
  EXPECT_EQ(fs::status(Pool()).permissions(), fs::perms(0600));
  const auto g = *format::ChooseGeometry({64 << 20, 2, 1 << 20, 256 << 10, 10000});
  const std::string says = "shards 2; in each heads 1, regions " + std::to_string(g.regions_per_shard) +
                           " of 1048576 bytes, segments of 262144 bytes, index slots 8192\n";
  EXPECT_NE(made.out.find(says), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("\nclosed cleanly\n"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("\nusable        8"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("\ngrows         to " + std::to_string(format::GrowthLimit(g)) + " bytes\n"),
            std::string::npos)
      << made.out;
  EXPECT_EQ(Do("info").out, made.out);

  const auto server = StartServerWith({"--pool", Pool(), "--listen", Address()});
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
  const auto json = Json(0, "info");
  EXPECT_EQ(json["pool"], Pool());
  EXPECT_EQ(json["needs_recovery"], false);
  EXPECT_EQ(json["superblocks"]["a"]["generation"], 3);
  EXPECT_EQ(json["geometry"]["shards"], 2);
  EXPECT_EQ(json["geometry"]["segment_size"], 256 << 10);
  EXPECT_DOUBLE_EQ(json["geometry"]["usable_share"], format::UsableShare(g));
  EXPECT_FALSE(json.contains("shards"));
}

TEST_F(ErdaPoolTest, PopulatedPoolHasNoHoles) {
  const auto holes = [this] {
    const UniqueFd fd(::open(Pool().c_str(), O_RDONLY | O_CLOEXEC));
    return ::lseek(fd.get(), 0, SEEK_HOLE) < 64 << 20;
  };
  ExpectFine(Do("create", {"--size", "64M"}));
  struct statfs info {};
  ASSERT_EQ(::statfs(Pool().c_str(), &info), 0);
  EXPECT_EQ(holes(), info.f_type != TMPFS_MAGIC) << "on a disk, blocks that were never written are holes";
  fs::remove(Pool());
  ExpectFine(Do("create", {"--size", "64M", "--populate"}));
  EXPECT_FALSE(holes());
}

// The same as in a pool that a server makes.
TEST_F(ErdaPoolTest, DefaultsAreThoseOfTheServer) {
  MakePool();
  const auto of_server = Json(0, "info")["geometry"];
  fs::remove(Pool());
  EXPECT_EQ(Json(0, "create", {"--size", "64M"})["geometry"], of_server);
}

TEST_F(ErdaPoolTest, ExistingPoolIsNeverOverwritten) {
  for (const std::string& content : {std::string(), std::string("dear to someone"), std::string(64 << 20, '\0')}) {
    WriteFile(Pool(), content);
    ExpectRefused(Do("create", {"--size", "64M"}), 1, Pool() + ": it exists already");
    EXPECT_TRUE(ReadFile(Pool()) == content);
  }
  fs::remove(Pool());
  ExpectFine(Do("create", {"--size", "64M"}));
  const std::string bytes = ReadFile(Pool());
  ExpectRefused(Do("create", {"--size", "64M"}), 1, Pool() + ": it exists already");
  ExpectRefused(Do("create", {"--size", "32M"}), 1, Pool() + ": it exists already");
  EXPECT_TRUE(ReadFile(Pool()) == bytes);
  for (const char* path : {"/", "/dev/null", "/dev/zero"}) {
    ExpectRefused(Run("erda-pool", {"create", path, "--size", "64M"}), 2, path);
  }
  fs::create_symlink(Path("nowhere"), Path("link"));
  ExpectRefused(Run("erda-pool", {"create", Path("link"), "--size", "64M"}), 1, "File exists");
  EXPECT_FALSE(fs::exists(Path("nowhere")));
}

TEST_F(ErdaPoolTest, FailedCreationLeavesNoFile) {
  const std::vector<Words> bad = {{},
                                  {"--size", "0"},
                                  {"--size", "1"},
                                  {"--size", "many"},
                                  {"--size", "64M", "--shards", "1000"},
                                  {"--size", "64M", "--region-size", "3M"},
                                  {"--size", "64M", "--region-size", "64M"},
                                  {"--size", "64M", "--segment-size", "3000"},
                                  {"--size", "64M", "--region-size", "1M", "--segment-size", "2M"},
                                  {"--size", "64M", "--index-entries", "100000000"}};
  for (const Words& more : bad) {
    ExpectRefused(Do("create", more), 2, "erda-pool: ");
    EXPECT_FALSE(fs::exists(Pool()));
  }
  ExpectRefused(Run("erda-pool", {"create", "dram:", "--size", "64M"}), 2, "dram:");
  ExpectRefused(Run("erda-pool", {"create", Path("nowhere/pool"), "--size", "64M"}), 2, Path("nowhere/pool"));
  fs::create_directory(Path("folder"));
  fs::permissions(Path("folder"), fs::perms(0555));
  const Words in_folder = {"create", Path("folder/pool"), "--size", "64M"};
  ExpectRefused(Run("erda-pool", in_folder, "", Rights::kAsAnyone), 1, Path("folder/pool"));
}

TEST_F(ErdaPoolTest, DamageIsFoundAndHasItsExitCode) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "damaged", "seventeen"}));
  ExpectFine(Cli({"put", "sound", "eighteen"}));
  StopServer(*server);
  const auto sound = Do("check");
  ExpectFine(sound);
  EXPECT_NE(sound.out.find(": keys 2, values of "), std::string::npos) << sound.out;
  EXPECT_NE(sound.out.find("\nclosed cleanly\nno damage\n"), std::string::npos) << sound.out;
  Damage("seventeen");
  const std::string bytes = ReadFile(Pool());
  const auto text = Do("check");
  EXPECT_EQ(text.code, 3);
  EXPECT_NE(text.out.find("damage: 1\n  shard 0: the value is damaged (key damaged, slot "), std::string::npos)
      << text.out;
  const auto json = Json(3, "check");
  EXPECT_EQ(json["values_verified"], true);
  EXPECT_EQ(json["keys"], 2);
  EXPECT_EQ(json["damage_count"], 1);
  EXPECT_EQ(json["damage"][0]["key"], "damaged");
  EXPECT_EQ(Json(3, "check", {"--list", "0"})["damage"].size(), 0U);
  const auto quick = Json(0, "check", {"--no-values"});
  EXPECT_EQ(quick["values_verified"], false);
  EXPECT_EQ(quick["verified_bytes"], 0);
  EXPECT_TRUE(ReadFile(Pool()) == bytes) << "the pool was changed";
}

TEST_F(ErdaPoolTest, APoolThatNeedsRecoveryIsSound) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  server->Signal(SIGKILL);
  EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  for (const char* command : {"info", "check"}) {
    const auto text = Do(command);
    ExpectFine(text);
    EXPECT_NE(text.out.find("\nnot closed cleanly: it needs recovery"), std::string::npos) << text.out;
    EXPECT_EQ(Json(0, command)["needs_recovery"], true);
  }
  EXPECT_EQ(Json(0, "info")["needs_verification"], false);
  // The same pool, as if the machine had been started again, or a sync had failed.
  const auto with_boot = [this](const format::BootId& boot) {
    std::string bytes = ReadFile(Pool());
    for (const uint64_t at : format::kSuperblockOffsets) {
      format::Superblock copy{};
      std::memcpy(&copy, bytes.data() + at, sizeof(copy));
      copy.boot = boot;
      copy.crc = format::SuperblockCrc(copy);
      std::memcpy(bytes.data() + at, &copy, sizeof(copy));
    }
    WriteFile(Pool(), bytes);
    EXPECT_EQ(Json(0, "info")["needs_verification"], true);
    return Do("info").out;
  };
  EXPECT_NE(with_boot({1}).find("\nnot closed cleanly, and the machine was started again since"), std::string::npos);
  EXPECT_NE(with_boot(format::kUnvouchedBoot).find("\nnot closed cleanly, and a sync of its file failed"),
            std::string::npos);
}

// No program makes such pools yet. So the test changes the superblock.
TEST_F(ErdaPoolTest, PoolsWithMirrorsAreShownAndNotServedAlone) {
  ExpectFine(Do("create", {"--size", "64M"}));
  EXPECT_FALSE(Json(0, "info").contains("mirror"));
  EXPECT_EQ(Do("info").out.find("mirror"), std::string::npos);
  const auto with_role = [this](format::MirrorRole role, uint64_t id) {
    std::string bytes = ReadFile(Pool());
    auto superblock = LoadAs<format::Superblock>(AsBytes(bytes).subspan(format::kSuperblockOffsets[0]));
    superblock.format_version = format::kMirroredVersion;
    superblock.mirror_role = static_cast<uint32_t>(role);
    superblock.mirror_id = id;
    superblock.epoch = 3;
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(bytes.data() + format::kSuperblockOffsets[0], &superblock, sizeof(superblock));
    WriteFile(Pool(), bytes);
  };
  const auto expect = [&](format::MirrorRole role, uint64_t id, const std::string& name, const std::string& more) {
    with_role(role, id);
    const auto text = Do("info");
    ExpectFine(text);
    EXPECT_NE(text.out.find(" bytes, format version 16, "), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("\nmirror role   " + name + more + "; epoch 3\n"), std::string::npos) << text.out;
    const auto json = Json(0, "info")["mirror"];
    EXPECT_EQ(json["role"], name);
    EXPECT_EQ(json["epoch"], 3);
    EXPECT_EQ(json["id"], id == 0 ? "0000000000000000" : "00000000000000ab");
    ExpectFine(Do("check"));
    ExpectFine(Run("erda-inspect", {Pool()}));
  };
  const auto expect_refused = [this](const std::string& part) {
    const std::string before = ReadFile(Pool());
    ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address()}), 1, part);
    ExpectRefused(Do("resize", {"--size", "128M"}), 1, "the same size");
    EXPECT_TRUE(ReadFile(Pool()) == before);
  };
  expect(format::MirrorRole::kFilling, 0xab, "filling", ", id 00000000000000ab");
  expect_refused("it is a mirror that may lack acknowledged puts");
  expect(format::MirrorRole::kInSync, 0xab, "in sync", ", id 00000000000000ab");
  expect_refused("it is a mirror, and in sync");
  expect(format::MirrorRole::kPrimary, 0xab, "primary", ", mirror 00000000000000ab may be promoted");
  expect_refused("it is a primary, and its mirror may be promoted");
  expect(format::MirrorRole::kPrimary, 0, "primary", "");
  expect(format::MirrorRole::kNone, 0, "none", "");
  StopServer(*StartServerWith({"--pool", Pool(), "--listen", Address()}));
  ExpectFine(Do("resize", {"--size", "128M"}));
  EXPECT_EQ(Json(0, "info")["mirror"]["epoch"], 3);
}

TEST_F(ErdaPoolTest, OtherFilesAndPoolsInUseAreRefused) {
  for (const char* command : {"info", "check"}) {
    ExpectRefused(Do(command), 1, Pool() + ": No such file or directory");
    WriteFile(Pool(), std::string(1 << 20, 'x'));
    ExpectRefused(Do(command), 1, Pool() + ": it is not an Erda pool");
    fs::remove(Pool());
  }
  const auto server = StartServer();
  ExpectRefused(Do("create", {"--size", "64M"}), 1, Pool() + ": it exists already");
  for (const char* command : {"info", "check"}) ExpectRefused(Do(command), 1, Pool() + ": a server has it open");
  StopServer(*server);
}

// --- resize

TEST_F(ErdaPoolTest, AFullPoolGrowsAndGoesOn) {
  const std::string value(100'000, 'v');
  int keys = 0;
  const auto fill_up = [&](int at_most) {
    for (int i = 0; i < at_most; ++i, ++keys) {
      const auto put = Cli({"put", "key" + std::to_string(keys), value + std::to_string(keys)});
      if (put.code == 0) continue;
      EXPECT_NE(put.err.find("resource exhausted"), std::string::npos) << put.err;
      return;
    }
  };
  const auto expect_all = [&] {
    for (int i = 0; i < keys; ++i)
      EXPECT_EQ(Cli({"get", "key" + std::to_string(i)}).out, value + std::to_string(i) + "\n");
  };
  ExpectFine(Do("create", {"--size", "4M", "--segment-size", "128K", "--shards", "2"}));
  {
    const auto server = StartServerWith({"--pool", Pool(), "--listen", Address()});
    fill_up(1000);
    EXPECT_LT(keys, 42);
    StopServer(*server);
  }
  const int full = keys;
  const auto made = Json(0, "info")["geometry"];
  const auto grown = Do("resize", {"--size", "16M"});
  ExpectFine(grown);
  EXPECT_NE(grown.out.find("\n16777216 bytes, "), std::string::npos) << grown.out;
  EXPECT_NE(grown.out.find("\nclosed cleanly\n"), std::string::npos) << grown.out;
  EXPECT_EQ(Do("info").out, grown.out);
  ExpectFine(Do("check"));
  const auto server = StartServerWith({"--pool", Pool(), "--size", "16M", "--listen", Address()});
  expect_all();
  fill_up(2 * full);
  EXPECT_EQ(keys, 3 * full) << "there is room for three times as much, and more";
  expect_all();
  // The pool is also recovered, checked, and grown again.
  server->Signal(SIGKILL);
  EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  ExpectRefused(Do("resize", {"--size", "64M"}), 1, "needs recovery");
  StopServer(*StartServerWith({"--pool", Pool(), "--listen", Address()}));
  const auto last = Json(0, "resize", {"--size", "64M"});
  EXPECT_EQ(last["geometry"]["pool_size"], 64 << 20);
  EXPECT_EQ(last["geometry"]["region_size"], made["region_size"]);
  EXPECT_EQ(last["geometry"]["growth_limit"], made["growth_limit"]);
  EXPECT_GT(last["geometry"]["layers"], 1);
  EXPECT_GT(last["geometry"]["usable_share"], 0.9);
  const auto check = Json(0, "check");
  EXPECT_EQ(check["keys"], keys);
  EXPECT_EQ(check["damage_count"], 0);
  const auto again = StartServerWith({"--pool", Pool(), "--listen", Address()});
  expect_all();
  StopServer(*again);
}

TEST_F(ErdaPoolTest, PoolThatCannotGrowIsUnchanged) {
  ExpectRefused(Do("resize", {"--size", "64M"}), 1, Pool() + ": No such file or directory");
  EXPECT_FALSE(fs::exists(Pool()));
  WriteFile(Pool(), std::string(1 << 20, 'x'));
  ExpectRefused(Do("resize", {"--size", "64M"}), 1, Pool() + ": it is not an Erda pool");
  fs::remove(Pool());
  MakePool();
  const std::string bytes = ReadFile(Pool());
  for (const char* size : {"0", "32M", "64M"}) ExpectRefused(Do("resize", {"--size", size}), 2, "a pool only grows");
  ExpectRefused(Do("resize", {"--size", "100G"}), 2, "it can grow to ");
  ExpectRefused(Do("resize"), 2, "--size");
  ExpectRefused(Do("resize", {"--size", "many"}), 2, "--size");
  EXPECT_TRUE(ReadFile(Pool()) == bytes);
  fs::permissions(Pool(), fs::perms(0444));
  ExpectRefused(Run("erda-pool", {"resize", Pool(), "--size", "128M"}, "", Rights::kAsAnyone), 1, Pool());
  fs::permissions(Pool(), fs::perms(0600));
  {
    const auto server = StartServer();
    ExpectRefused(Do("resize", {"--size", "128M"}), 1, Pool() + ": a server has it open");
    StopServer(*server);
  }
  EXPECT_EQ(fs::file_size(Pool()), 64U << 20);
  ExpectRefused(Run("erda-pool", {"resize", "/dev/null", "--size", "64M"}), 1, "/dev/null");
}

// A server with the pool's earlier size does not open the grown pool.
TEST_F(ErdaPoolTest, ServerWithTheOldSizeRefusesAGrownPool) {
  MakePool();
  ExpectFine(Do("resize", {"--size", "128M"}));
  ExpectRefused(ServerWith({"--pool", Pool(), "--size", "64M", "--listen", Address()}), 2,
                "it has 134217728 bytes, not the 67108864 asked for");
  StopServer(*StartServerWith({"--pool", Pool(), "--size", "128M", "--listen", Address()}));
}

TEST_F(ErdaPoolTest, APoolMadeToGrowGrowsThatFar) {
  const auto plain = Json(0, "create", {"--size", "64M"})["geometry"];
  fs::remove(Pool());
  const auto made = Json(0, "create", {"--size", "64M", "--grow-to", "40G"})["geometry"];
  EXPECT_LT(plain["growth_limit"], uint64_t{40} << 30);
  EXPECT_GE(made["growth_limit"], uint64_t{40} << 30);
  fs::remove(Pool());
  ExpectRefused(Do("create", {"--size", "64M", "--grow-to", "200G"}), 2, "less than half of a pool");
  EXPECT_FALSE(fs::exists(Pool()));
}

// A kill at any moment leaves the old pool or the new one. A server opens it with the matching size.
TEST_F(ErdaPoolTest, GrowthBeyondTheDiskLeavesThePoolUnchanged) {
  MakePool();
  const std::string before = ReadFile(Pool());
  Words limited = {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 200000; exec \"$@\"", "sh"};  // In units of 512 bytes.
  for (const std::string& word : Command("erda-pool", {"resize", Pool(), "--size", "128M"})) limited.push_back(word);
  const Ended ended = Process(limited).Wait();
  ExpectRefused(ended, 2, ": cannot allocate 134217728 bytes for pool " + Pool());
  EXPECT_EQ(ended.err.find(Pool()), ended.err.rfind(Pool())) << "it is named once";
  EXPECT_TRUE(ReadFile(Pool()) == before);
}

TEST_F(ErdaPoolTest, AKilledResizeLeavesAPool) {
  constexpr uint64_t kOld = 8 << 20;
  const auto server = StartServerWith({"--pool", Pool(), "--size", "8M", "--listen", Address()});
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
  uint64_t size = kOld;
  for (int i = 0; i < 40; ++i) {
    const uint64_t wanted = size + (1 << 20);
    Process resize(Command("erda-pool", {"resize", Pool(), "--size", std::to_string(wanted)}));
    if (i % 8 != 7) {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
      resize.Signal(SIGKILL);
    }
    resize.Wait();
    const auto check = Json(0, "check");
    EXPECT_EQ(check["keys"], 1);
    const uint64_t now = Json(0, "info")["geometry"]["pool_size"];
    EXPECT_TRUE(now == size || now == wanted) << now;
    if (check["needs_recovery"] == true || i % 8 == 7) {
      const auto next = StartServerWith({"--pool", Pool(), "--size", std::to_string(now), "--listen", Address()});
      EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
      StopServer(*next);
    }
    size = now;
  }
  EXPECT_GT(size, kOld);
}

// The pool of the plan takes all records and is not much larger than they are. (In the log, each object takes granules,
// with header, label and checksum. The index takes up to 43 bytes for each key, while it doubles.)
TEST_F(ErdaPoolTest, PlannedPoolTakesTheRecordsAndLittleMore) {
  const struct {
    uint64_t records, value_size;
    const char* shards;
  } plans[] = {{60'000, 1000, "1"}, {200'000, 8, "2"}, {800, 100'000, "1"}, {250, 2'200'000, "1"}};
  for (const auto& [records, value_size, shards] : plans) {
    SCOPED_TRACE(testing::Message() << records << " of " << value_size);
    const Words what = {"--records",    std::to_string(records),    "--key-size", "24",
                        "--value-size", std::to_string(value_size), "--shards",   shards};
    Words arguments = {"plan", "--json"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    const auto plan = nlohmann::json::parse(Run("erda-pool", arguments).out);
    const uint64_t needed = records * (plan["record_bytes"].get<uint64_t>() + 43);
    EXPECT_LE(plan["pool_size"], 3 * needed / 2 + (8 << 20));
    EXPECT_GE(plan["pool_size"], needed);
    EXPECT_GE(plan["largest_value"], value_size);

    Words create = {"create", Pool()};
    std::istringstream options(plan["options"].get<std::string>());
    for (std::string word; options >> word;) create.push_back(word);
    ExpectFine(Run("erda-pool", create));
    EXPECT_EQ(Json(0, "info")["geometry"]["pool_size"], plan["pool_size"]);
    const auto server = StartServerWith({"--pool", Pool(), "--listen", Address(), "--log-level", "error"});
    const auto loaded = Ycsb({"--workload", "C", "--records", std::to_string(records), "--operations", "1",
                              "--value-size", std::to_string(value_size), "--threads", "1", "--depth", "8"});
    EXPECT_EQ(loaded.code, 0) << loaded.err;
    const auto stats = nlohmann::json::parse(Cli({"stats", "--json"}).out);
    EXPECT_EQ(stats["keys"], records);
    const auto live = stats["log_bytes_live"].get<uint64_t>();
    EXPECT_LT(live * 100, stats["log_bytes_total"].get<uint64_t>() * 82) << "the server warns at 85 %";
    StopServer(*server);
    fs::remove(Pool());
  }
}

TEST_F(ErdaPoolTest, PlanPrintsCommandsAndRefusesImpossibleRecords) {
  const Words usual = {"plan", "--records", "1000000", "--key-size", "24", "--value-size", "1K"};
  const auto text = Run("erda-pool", usual);
  ExpectFine(text);
  EXPECT_NE(text.out.find("\nerda-pool create /var/lib/erda/pool --size 1424M --shards 1\n"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("\nerda-server --pool /var/lib/erda/pool "), std::string::npos) << text.out;
  // Two values of 32 MiB do not fit into a segment of 64 MiB with their headers.
  const auto large = Run("erda-pool", {"plan", "--records", "1000", "--key-size", "24", "--value-size", "32M"});
  EXPECT_NE(large.out.find(" --segment-size 268435456\n"), std::string::npos) << large.out;
  ExpectRefused(Run("erda-pool", {"plan", "--records", "1", "--key-size", "24", "--value-size", "256M"}), 2,
                "no pool can store");
  for (const char* bytes : {"18446744073709551615", "18446744073709551500", "16777215T", "8388608T"}) {
    ExpectRefused(Run("erda-pool", {"plan", "--records", "1", "--key-size", "24", "--value-size", bytes}), 2,
                  "no pool can store");
  }
  ExpectRefused(Run("erda-pool", {"plan", "--records", "1", "--key-size", "2000", "--value-size", "1"}), 2,
                "--key-size");
  ExpectRefused(Run("erda-pool", {"plan", "--key-size", "20", "--value-size", "1"}), 2, "--records");
}

TEST_F(ErdaPoolTest, PoolGrowsAsFarAsTheServerReports) {
  const auto server = StartServerWith({"--pool", Pool(), "--size", "64M", "--grow-to", "40G", "--listen", Address()});
  StopServer(*server);
  const uint64_t says = Json(0, "info")["geometry"]["growth_limit"];
  EXPECT_GE(says, uint64_t{40} << 30);
  EXPECT_NE(server->out().find("the pool can grow to " + std::to_string(says) + " bytes (erda-pool resize)\n"),
            std::string::npos)
      << server->out();
  // An existing pool that cannot grow so far is refused, and stays.
  ExpectRefused(ServerWith({"--pool", Pool(), "--grow-to", "1000G", "--listen", Address()}), 2,
                "it can grow to " + std::to_string(says) + " bytes, and not to the 1073741824000 asked for");
  StopServer(*StartServerWith({"--pool", Pool(), "--grow-to", "40G", "--listen", Address()}));
}

// The dump has all of the pool, and a server that loads it has it, too.
TEST_F(ErdaPoolTest, SalvagedDumpLoadsIntoAnotherServer) {
  const auto server = StartServer({"--shards", "2"});
  for (int i = 0; i < 20; ++i) ExpectFine(Cli({"put", "key" + std::to_string(i), "value" + std::to_string(i)}));
  ExpectFine(Cli({"put", "--ttl", "3600000", "expires", "later"}));
  ExpectFine(Cli({"put", "large", "-"}, std::string(100'000, 'L')));
  ExpectRefused(Do("salvage", {Path("dump")}), 1, Pool() + ": a server has it open");
  StopServer(*server);
  EXPECT_FALSE(fs::exists(Path("dump")));

  const auto sound = Json(0, "salvage", {Path("dump")});
  EXPECT_EQ(sound["keys"], 22);
  EXPECT_EQ(sound["keys_named"], 22);
  EXPECT_EQ(sound["complete"], true);
  EXPECT_EQ(sound["geometry"]["from"], "superblock");

  std::string bytes = ReadFile(Pool());
  const auto g = *format::ChooseGeometry({64 << 20, 2});
  std::fill_n(bytes.begin(), 8192, '\0');  // Both superblocks.
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(g.index_offset), g.regions_offset - g.index_offset, '\0');
  const size_t at = bytes.find("value7");
  bytes[at] = 'V';
  WriteFile(Pool(), bytes);
  ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address()}), 1, Pool());
  const auto json = Json(0, "salvage", {Path("dump")});
  EXPECT_EQ(json["keys_unnamed"], 21);
  EXPECT_EQ(json["keys_unfinished"], 1);
  EXPECT_EQ(json["lost"][0]["key"], "key7");
  EXPECT_EQ(json["geometry"]["from"], "defaults");
  const auto text = Do("salvage", {Path("dump"), "--unnamed", Path("unnamed")});
  ExpectFine(text);
  EXPECT_NE(text.out.find(": keys 21 written to "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("some of them may have been deleted"), std::string::npos) << text.out;
  EXPECT_TRUE(ReadFile(Pool()) == bytes);

  const auto other = StartServerWith({"--pool", Path("other"), "--size", "64M", "--listen", Address()});
  EXPECT_EQ(Cli({"load", Path("dump")}).out, "keys 0\n");
  EXPECT_EQ(Cli({"load", Path("unnamed")}).out, "keys 21\n");
  EXPECT_EQ(Cli({"get", "key19"}).out, "value19\n");
  EXPECT_EQ(Cli({"get", "key7"}).code, 1);
  EXPECT_EQ(Cli({"get", "large"}).out, std::string(100'000, 'L') + "\n");
  EXPECT_EQ(Cli({"get", "expires"}).out, "later\n");
  StopServer(*other);
}

TEST_F(ErdaPoolTest, SalvageOverwritesNeitherThePoolNorItsOwnDump) {
  ExpectFine(Run("erda-pool", {"create", Pool(), "--size", "64M"}));
  const std::string before = ReadFile(Pool());
  ExpectRefused(Run("erda-pool", {"salvage", Pool(), Pool()}), 2, "is the pool");
  ExpectRefused(Run("erda-pool", {"salvage", Pool(), Path("dump"), "--unnamed", Pool()}), 2, "is the pool");
  ExpectRefused(Run("erda-pool", {"salvage", Pool(), Path("dump"), "--unnamed", Path("dump")}), 2, "give two");
  EXPECT_EQ(ReadFile(Pool()), before);
  EXPECT_FALSE(fs::exists(Path("dump")));
}

TEST_F(ErdaPoolTest, SalvageReportsUnreadableParts) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "damaged", "seventeen"}));
  ExpectFine(Cli({"put", "sound", "eighteen"}));
  StopServer(*server);
  Damage("seventeen");
  const auto text = Do("salvage", {Path("dump")});
  EXPECT_EQ(text.code, 3);
  EXPECT_NE(text.out.find("the value is damaged (key damaged), at byte "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("something could not be read\n"), std::string::npos) << text.out;
  const auto to_stdout = Do("salvage", {"-"});
  EXPECT_EQ(to_stdout.code, 3);
  EXPECT_TRUE(to_stdout.out == ReadFile(Path("dump")));
  EXPECT_NE(to_stdout.err.find("something could not be read\n"), std::string::npos) << to_stdout.err;

  ExpectRefused(Do("salvage"), 2, "FILE");
  // The reason for the failure of one dump, though the other one can be made.
  ExpectRefused(Do("salvage", {"/dev/null/dump", "--unnamed", Path("unnamed")}), 1, "Not a directory");
  ExpectRefused(Do("salvage", {"-", "--unnamed", "-"}), 2, "stdout");
  ExpectRefused(Do("salvage", {Path("nowhere/dump")}), 1, Path("nowhere/dump"));
  ExpectRefused(Do("salvage", {Path("dump3"), "--region-size", "256M"}), 1, Pool() + ": no pool can have been made");
  WriteFile(Pool(), std::string(1 << 20, 'x'));
  ExpectRefused(Do("salvage", {Path("dump3")}), 1, Pool() + ": neither superblock is readable");
  EXPECT_FALSE(fs::exists(Path("dump3")));
}

TEST_F(ErdaPoolTest, BadUsageIsOneLineAndHasItsExitCode) {
  const std::vector<Words> bad = {{},
                                  {"frobnicate"},
                                  {"info"},
                                  {"check"},
                                  {"info", Pool(), "another"},
                                  {"info", Pool(), "--list", "1"},
                                  {Pool()},
                                  {"check", Pool(), "info"}};
  for (const Words& arguments : bad) ExpectRefused(Run("erda-pool", arguments), 2, "erda-pool: ");
  ExpectFine(Do("create", {"--size", "64M"}));
  for (const char* command : {"info", "check"}) {
    const std::string line = BinDir() + "/erda-pool " + command + " " + Pool() + " > /dev/full";
    ExpectRefused(Process({"/bin/sh", "-c", line}).Wait(), 1, "stdout");
  }
}

}  // namespace
}  // namespace erda
