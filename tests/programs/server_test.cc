// erda-server: its start and its stop, and the addresses that it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/superblock.h"
#include "programs/fixture.h"

namespace erda {
namespace {

namespace fs = std::filesystem;

class ServerTest : public ProgramsTest {};

TEST_F(ServerTest, SaysThatItIsReadyAndHowEachFabricIsUsed) {
  const auto server = StartServer({"--shards", "2"});
  const std::string ready =
      "erda-server: ready, listening on " + Address() + ", pool " + Pool() + " (process-safe), 2 shards\n";
  ASSERT_TRUE(server->out().starts_with(ready)) << server->out();
  const std::regex fabric(
      "erda-server: shm, flush method none, pool registered in [0-9]+\\.[0-9]{3} ms\n"
      "erda-server: pool .* is process-safe: .*\n"
      "erda-server: the pool can grow to [0-9]{10} bytes \\(erda-pool resize\\)\n");
  EXPECT_TRUE(std::regex_match(server->out().substr(ready.size()), fabric)) << server->out();
  EXPECT_EQ(server->err(), "");
}

TEST_F(ServerTest, ListensOnSeveralAddresses) {
  const auto server = StartServer({"--listen", "shm:" + Path("second")});
  ExpectFine(Cli({"put", "key", "value"}));
  EXPECT_EQ(Run("erda-cli", {"-a", "shm:" + Path("second"), "get", "key"}).out, "value\n");
  StopServer(*server);
}

TEST_F(ServerTest, TakesAllItsOptions) {
  const auto server = StartServer({"--shards",
                                   "2",
                                   "--region-size",
                                   "4M",
                                   "--segment-size",
                                   "512k",
                                   "--index-entries",
                                   "10000",
                                   "--max-clients",
                                   "4",
                                   "--slots-per-client",
                                   "8",
                                   "--slot-bytes",
                                   "4096",
                                   "--reservations-per-client",
                                   "16",
                                   "--clients-per-token",
                                   "3",
                                   "--requests-per-second",
                                   "100000",
                                   "--spin-us",
                                   "0",
                                   "--polling",
                                   "sleep",
                                   "--flush",
                                   "read-after-write",
                                   "--shm-access",
                                   "everybody",
                                   "--pool-writes",
                                   "nobody",
                                   "--staging-bytes",
                                   "1M",
                                   "--sync",
                                   "500ms",
                                   "--nvm-write-latency-ns",
                                   "150"});
  ExpectFine(Ycsb({"--workload", "A", "--records", "500", "--operations", "2000", "--polling", "busy", "--verify"}));
  StopServer(*server);
}

TEST_F(ServerTest, ReportsHowClientsPlaceLargeValues) {
  for (const auto& [who, placing] : {std::pair("nobody", "staging"), std::pair("same-user", "pool")}) {
    const auto server = StartServer({"--pool-writes", who, "--shm-access", "group"});
    const std::string stats = Cli({"stats", "--json"}).out;
    EXPECT_TRUE(std::regex_search(stats, std::regex("\"placing\": *\"" + std::string(placing) + "\""))) << stats;
    EXPECT_EQ(fs::status(Path("socket")).permissions() & fs::perms::all, fs::perms{0660});
    StopServer(*server);
  }
}

TEST_F(ServerTest, StopsOnASignalAndHasTheDataAfterwards) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string value = "stopped by " + std::to_string(signal);
    const auto server = StartServer();
    ExpectFine(Cli({"put", std::to_string(signal), value}));
    server->Signal(signal);
    const auto ended = server->Wait();
    ExpectFine(ended);
    EXPECT_TRUE(ended.out.ends_with("erda-server: stopping on SIG" + std::string(sigabbrev_np(signal)) + "\n"));

    const auto again = StartServer();
    EXPECT_EQ(Cli({"get", std::to_string(signal)}).out, value + "\n");
    StopServer(*again);
  }
}

TEST_F(ServerTest, AllRecordsAreThereAfterARestart) {
  const Words run = {"--records", "5000", "--operations", "5000", "--value-size", "300", "--verify"};
  Words load = {"--workload", "A"};
  load.insert(load.end(), run.begin(), run.end());
  Words check = {"--workload", "C", "--no-load", "--json", Path("json")};
  check.insert(check.end(), run.begin(), run.end());
  {
    const auto server = StartServer({"--shards", "2"});
    ExpectFine(Ycsb(load));
    StopServer(*server);
  }
  const auto server = StartServer();  // Takes the pool's number of shards.
  ExpectFine(Ycsb(check));
  EXPECT_NE(ReadFile(Path("json")).find("\"not_found\": 0"), std::string::npos);
}

TEST_F(ServerTest, DramPoolNeedsNoFile) {
  const auto server = StartServerWith({"--pool", "dram:", "--size", "64M", "--listen", Address()});
  EXPECT_NE(server->out().find("pool dram: (volatile)"), std::string::npos);
  ExpectFine(Cli({"put", "key", "value"}));
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  StopServer(*server);
}

// Returns the kibibytes of shared memory and of files that a process has mapped pages of.
uint64_t MappedKibibytes(pid_t pid) {
  std::ifstream from("/proc/" + std::to_string(pid) + "/status");
  uint64_t sum = 0;
  for (std::string name; from >> name;) {
    uint64_t number = 0;
    if ((name == "RssShmem:" || name == "RssFile:") && from >> number) sum += number;
  }
  return sum;
}

TEST_F(ServerTest, PopulatesAllOfItsPool) {
  for (const std::string& pool : {std::string("dram:"), Pool()}) {
    for (const bool populate : {false, true}) {
      Words words = {"--pool", pool, "--size", "256M", "--listen", Address()};
      if (populate) words.emplace_back("--populate");
      const auto server = StartServerWith(words);
      const uint64_t mapped = MappedKibibytes(server->pid());
      EXPECT_EQ(mapped >= 256 << 10, populate) << pool << " " << mapped;
      ExpectFine(Cli({"put", "key", "value"}));
      StopServer(*server);
    }
  }
}

TEST_F(ServerTest, PoolThatDoesNotFitIntoTheMemoryIsNotPopulated) {
  // Twice the machine's memory. The thread sanitizer cannot map some terabytes.
  const uint64_t bytes = 2 * static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  const std::string size = std::to_string(bytes >> 30) + "G";
  ExpectRefused(ServerWith({"--pool", "dram:", "--size", size, "--listen", Address(), "--populate"}), 1,
                "pool dram:: populating it takes ");
}

TEST_F(ServerTest, TokensComeFromFilesAndAreNeverPrinted) {
  const std::string token = "a-token-that-is-secret";
  WriteFile(Path("tokens"), token + "\n");
  std::filesystem::permissions(Path("tokens"), std::filesystem::perms::owner_read);
  const auto server = StartServer({"--token-file", Path("tokens")});
  ExpectRefused(Cli({"put", "key", "value"}), 7, "asks for a token");
  ExpectFine(Cli({"--token-file", Path("tokens"), "put", "key", "value"}));
  EXPECT_EQ(Cli({"--token-file", Path("tokens"), "get", "key"}).out, "value\n");
  EXPECT_EQ((server->out() + server->err()).find(token), std::string::npos);
  StopServer(*server);
  const auto refused = [&](const std::string& text, std::filesystem::perms rights, const std::string& words) {
    WriteFile(Path("wrong"), text);
    std::filesystem::permissions(Path("wrong"), rights);
    const auto ended = ServerWith({"--pool", Pool(), "--listen", Address(), "--token-file", Path("wrong")});
    EXPECT_NE(ended.code, 0);
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find(token), std::string::npos);
    std::filesystem::remove(Path("wrong"));
  };
  using std::filesystem::perms;
  refused(token + " read-write\n", perms::owner_read, "line 1");
  refused(token + "\n", perms::owner_read | perms::others_read, "chmod 600");
}

TEST_F(ServerTest, RefusedClientsAreLoggedWithinALimit) {
  using std::filesystem::perms;
  WriteFile(Path("tokens"), "a-token-that-is-secret\n");
  WriteFile(Path("wrong"), "another-one-that-is-secret\n");
  for (const char* name : {"tokens", "wrong"}) std::filesystem::permissions(Path(name), perms::owner_read);
  const auto server = StartServer({"--token-file", Path("tokens")});
  constexpr int kTries = 30;
  for (int i = 0; i < kTries; ++i) {
    ExpectRefused(Cli({"--token-file", Path("wrong"), "get", "key"}), 7, "does not know this token");
  }
  server->Signal(SIGTERM);
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 0);
  const std::regex line(
      "[0-9T:.-]+Z warning: client [0-9a-f]{16} \\(shm, process [0-9]+ of user [0-9]+\\): refused: the server does not "
      "know "
      "this "
      "token");
  const std::regex left_out("[0-9T:.-]+Z warning: ([0-9]+) more lines like these were left out");
  std::istringstream lines(ended.err);
  int said = 0;
  int missing = 0;
  for (std::string text; std::getline(lines, text);) {
    std::smatch match;
    if (std::regex_match(text, match, left_out)) {
      missing += std::stoi(match[1]);
    } else {
      EXPECT_TRUE(std::regex_match(text, line)) << text;
      ++said;
    }
  }
  EXPECT_GE(said, 20);
  EXPECT_EQ(said + missing, kTries);
  EXPECT_EQ(ended.err.find("secret"), std::string::npos);
}

TEST_F(ServerTest, BadUsageIsOneLineAndHasItsExitCode) {
  const std::string pool = Pool();
  const std::string address = Address();
  const std::vector<Words> bad = {{},
                                  {"--pool", pool},
                                  {"--listen", address},
                                  {"--pool", pool, "--listen", address, "--unknown"},
                                  {"--pool", pool, "--listen", address, "extra"},
                                  {"--pool", pool, "--listen", address, "--size"},
                                  {"--pool", pool, "--listen", address, "--size", "many"},
                                  {"--pool", pool, "--listen", address, "--size", "-1"},
                                  {"--pool", pool, "--listen", address, "--size", "64X"},
                                  {"--pool", pool, "--listen", address, "--size", "99999999999G"},
                                  {"--pool", pool, "--listen", address, "--pool-writes", "me"},
                                  {"--pool", pool, "--listen", address, "--shm-access", "0666"},
                                  {"--pool", pool, "--listen", address, "--staging-bytes", "2G"},
                                  {"--pool", pool, "--listen", address, "--shards", "-1"},
                                  {"--pool", pool, "--listen", address, "--shards", "4294967296"},
                                  {"--pool", pool, "--listen", address, "--slots-per-client", "257"},
                                  {"--pool", pool, "--listen", address, "--slot-bytes", "100"},
                                  {"--pool", pool, "--listen", address, "--clients-per-token", "-1"},
                                  {"--pool", pool, "--listen", address, "--requests-per-second", "99"},
                                  {"--pool", pool, "--listen", address, "--spin-us", "1.5"}};
  for (const Words& arguments : bad) ExpectRefused(ServerWith(arguments), 2, "erda-server: ");
  EXPECT_FALSE(fs::exists(pool));
}

TEST_F(ServerTest, BadListenAddressIsRefusedAndLeavesNoPool) {
  for (const std::string& address : Words{"nowhere", "tcp:localhost:1", "shm:", "shm:/" + std::string(200, 'x')}) {
    ExpectRefused(ServerWith({"--pool", Pool(), "--size", "64M", "--listen", address}), 2, address);
    EXPECT_FALSE(fs::exists(Pool())) << address;
  }
}

TEST_F(ServerTest, ListenPathInAFolderThatDoesNotExistIsRefused) {
  const std::string path = Path("nowhere/socket");
  const auto ended = ServerWith({"--pool", Pool(), "--size", "64M", "--listen", "shm:" + path});
  EXPECT_NE(ended.code, 0);
  ExpectRefused(ended, ended.code, path);
}

TEST_F(ServerTest, ListenPathOfAnotherServerIsRefused) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  const auto ended = ServerWith({"--pool", Path("second"), "--size", "64M", "--listen", Address()});
  EXPECT_NE(ended.code, 0);
  ExpectRefused(ended, ended.code, Path("socket"));
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  StopServer(*server);
}

TEST_F(ServerTest, ListenPathOfAnOrdinaryFileIsRefused) {
  WriteFile(Path("socket"), "precious");
  const auto ended = ServerWith({"--pool", Pool(), "--size", "64M", "--listen", Address()});
  EXPECT_NE(ended.code, 0);
  ExpectRefused(ended, ended.code, Path("socket"));
  EXPECT_EQ(ReadFile(Path("socket")), "precious");
}

TEST_F(ServerTest, SocketThatAKilledServerLeftIsTakenOver) {
  auto killed = StartServer();
  killed->Signal(SIGKILL);
  EXPECT_EQ(killed->Wait().code, 128 + SIGKILL);
  const auto server = StartServerWith({"--pool", Path("second"), "--size", "64M", "--listen", Address()});
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
}

// Makes the pool name another boot, as if the machine had been started again.
void PretendAnotherBoot(const std::string& path) {
  std::string bytes = ReadFile(path);
  for (const uint64_t at : format::kSuperblockOffsets) {
    auto superblock = LoadAs<format::Superblock>(AsBytes(bytes).subspan(at));
    if (superblock.magic != format::kPoolMagic) continue;
    superblock.boot.fill(1);
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(bytes.data() + at, &superblock, sizeof(superblock));
  }
  WriteFile(path, bytes);
}

TEST_F(ServerTest, ReportsDamageAndPossiblyMissingPutsAfterAPowerCut) {
  {
    const auto server = StartServer();
    ExpectFine(Cli({"put", "sound", "sound value"}));
    ExpectFine(Cli({"put", "torn", "torn value"}));
    server->Signal(SIGKILL);
    EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  }
  {
    const auto server = StartServer();  // The same boot: the page cache has everything.
    EXPECT_EQ(server->out().find("may be missing"), std::string::npos) << server->out();
    server->Signal(SIGKILL);
    EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  }
  PretendAnotherBoot(Pool());
  Damage("torn value");
  const auto server = StartServer();
  EXPECT_NE(server->out().find("acknowledged puts may be missing; every value was verified: 1 damaged"),
            std::string::npos)
      << server->out();
  EXPECT_EQ(Cli({"get", "sound"}).out, "sound value\n");
  EXPECT_NE(Cli({"get", "torn"}).code, 0);
  EXPECT_NE(Cli({"stats"}).out.find("recovery_shards_verified   1\n"), std::string::npos) << Cli({"stats"}).out;
  ExpectFine(Cli({"put", "torn", "again"}));
  EXPECT_EQ(Cli({"get", "torn"}).out, "again\n");
  server->Signal(SIGTERM);
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("value of key torn is damaged"), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find("before this run, the machine lost power"), std::string::npos) << ended.out;
}

TEST_F(ServerTest, ReportsDurabilityAndSyncInterval) {
  const std::string words =
      "acknowledged puts survive the death of any process, but not a power cut or a crash of the kernel";
  const auto server = StartServer({"--sync", "200ms"});
  EXPECT_NE(server->out().find("is process-safe: " + words + "; it is synced every 200 ms"), std::string::npos)
      << server->out();
  ExpectFine(Cli({"put", "greeting", "hello"}));
  EXPECT_TRUE(WaitUntil([&] { return Cli({"stats"}).out.find("syncs 0") == std::string::npos; }));
  EXPECT_NE(Cli({"stats"}).out.find(words), std::string::npos);
  StopServer(*server);
  const auto never = StartServer({"--sync", "never"});
  EXPECT_NE(never->out().find("nothing is synced before the server stops"), std::string::npos) << never->out();
  StopServer(*never);
  for (const char* wrong : {"0", "0s", "-1s", "1h", "25000m", "s", "1 s"}) {
    ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address(), "--sync", wrong}), 2, "is not a time");
  }
}

TEST_F(ServerTest, NamesTheFileWhosePagesAreGoneAndEndsByTheSignal) {
  const auto server = StartServer({"--log-file", Path("log")});
  ExpectFine(Cli({"put", "greeting", "hello"}));
  std::filesystem::resize_file(Pool(), 8192);
  (void)Cli({"put", "greeting", "again"});
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 128 + SIGBUS);
  EXPECT_NE(ended.err.find("of " + Pool() + " cannot be had any more: the file was made shorter"), std::string::npos)
      << ended.err;
  EXPECT_NE(ReadFile(Path("log")).find(ended.err), std::string::npos);
}

TEST_F(ServerTest, DistinguishesASentBusErrorFromAMissingPage) {
  const auto server = StartServer();
  server->Signal(SIGBUS);
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 128 + SIGBUS);
  EXPECT_NE(ended.err.find("a process sent"), std::string::npos) << ended.err;
}

TEST_F(ServerTest, FullPoolRefusesPutsAndServesTheRest) {
  // One head only: when it is full, so is the pool.
  const auto server =
      StartServerWith({"--pool", Pool(), "--size", "16M", "--region-size", "1M", "--listen", Address()});
  ExpectFine(Cli({"put", "before", "value"}));
  ExpectRefused(Ycsb({"--workload", "C", "--records", "100000", "--operations", "1"}), 1, "resource exhausted");
  // Nearly a segment, so that no gap takes it.
  ExpectRefused(Cli({"put", "late", "-"}, std::string(100'000, 'v')), 4, Address());
  EXPECT_EQ(Cli({"get", "before"}).out, "value\n");
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait().code, 0);  // Its log says that the pool fills.
}

}  // namespace
}  // namespace erda
