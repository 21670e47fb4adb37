// erda-scheme-server as a process, with erda-ycsb, and erda-bench bytes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class SchemeServerTest : public ProgramsTest, public testing::WithParamInterface<std::string> {
 protected:
  ~SchemeServerTest() override { ::unsetenv("PMEM_IS_PMEM_FORCE"); }

  [[nodiscard]] std::unique_ptr<Process> StartScheme(const Words& more = {}) const {
    Words arguments = {"--scheme", GetParam(), "--pool", Pool(), "--size", "64M", "--listen", Address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto server = std::make_unique<Process>(Command("erda-scheme-server", arguments));
    WaitUntil([&server] { return server->out().find(": ready, ") != std::string::npos || !server->Running(); });
    EXPECT_TRUE(server->Running()) << server->out() << server->err();
    return server;
  }
  // Runs with --scheme. Returns the parsed results.
  json Results(Words arguments) const {
    const std::string path = Path("results.json");
    arguments.insert(arguments.end(), {"--scheme", GetParam(), "--json", path});
    const auto ended = Ycsb(arguments);
    ExpectFine(ended);
    EXPECT_NE(ended.out.find("ops/s"), std::string::npos) << ended.out;
    return json::parse(ReadFile(path), nullptr, false);
  }
};

INSTANTIATE_TEST_SUITE_P(Both, SchemeServerTest, testing::Values("redo", "raw"),
                         [](const auto& one) { return one.param; });

TEST_P(SchemeServerTest, SaysThatItIsReadyAndStopsOnASignal) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto server = StartScheme();
    EXPECT_EQ(server->out(), "erda-scheme-server: ready, scheme " + GetParam() + ", listening on " + Address() +
                                 ", pool " + Pool() + " (process-safe), flush method none\n");
    server->Signal(signal);
    const auto ended = server->Wait();
    ExpectFine(ended);
    EXPECT_TRUE(ended.out.ends_with("stopping on SIG" + std::string(sigabbrev_np(signal)) + "\n")) << ended.out;
  }
}

TEST_P(SchemeServerTest, RunsEachWorkload) {
  const auto server = StartScheme();
  for (const std::string workload : {"A", "B", "C", "D", "F", "update"}) {
    for (const auto& [threads, depth] : {std::pair("1", "1"), std::pair("2", "8")}) {
      SCOPED_TRACE(workload + ", threads " + threads + ", depth " + depth);
      const json results = Results({"--workload", workload, "--records", "1000", "--operations", "3001", "--value-size",
                                    "200", "--threads", threads, "--depth", depth, "--verify"});
      ASSERT_TRUE(results.is_object());
      EXPECT_EQ(results["scheme"], GetParam());
      EXPECT_EQ(results["not_found"], 0);
      EXPECT_EQ(results["failures"], 0);
      const json& run = results["run"];
      const uint64_t puts = run["put"]["count"];
      EXPECT_EQ(run["nvm_bytes"], run["nvm_bytes_server"].get<uint64_t>() + run["nvm_bytes_clients"].get<uint64_t>());
      // Updates alone: 20 + 2 * (24 + 200). The log's head is written from time to time.
      if (workload != "D") {
        EXPECT_GE(run["nvm_bytes"], puts * 468);
        EXPECT_LE(run["nvm_bytes"], puts * 468 + 1000);
      }
      if (GetParam() == "raw") {
        EXPECT_EQ(run["nvm_bytes_clients"], puts * 240);
      } else {
        EXPECT_EQ(run["nvm_bytes_clients"], 0);
      }
    }
  }
}

TEST_P(SchemeServerTest, ServesWithTheFlushesOfNvm) {
  ASSERT_EQ(::setenv("PMEM_IS_PMEM_FORCE", "1", 1), 0);  // For the server: its file is NVM.
  const auto server = StartScheme({"--nvm-write-latency-ns", "150"});
  EXPECT_NE(server->out().find("(power-safe), flush method server-flush"), std::string::npos) << server->out();
  for (const char* depth : {"1", "16"}) {
    const json results = Results({"-w", "A", "--records", "500", "--operations", "4000", "--value-size", "1000",
                                  "--depth", depth, "--threads", "2", "--verify"});
    EXPECT_EQ(results["failures"], 0);
  }
}

TEST_P(SchemeServerTest, KilledServerFindsItsRecordsAgain) {
  const Words run = {"-w",           "A",   "--records", "500", "--operations", "5000",
                     "--value-size", "300", "--depth",   "8",   "--verify"};
  {
    const auto server = StartScheme();
    EXPECT_EQ(Results(run)["failures"], 0);
    server->Signal(SIGKILL);
    EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  }
  const auto server = StartScheme();
  EXPECT_NE(server->out().find(" entries were in the log, "), std::string::npos) << server->out();
  Words again = run;
  again.emplace_back("--no-load");
  const json results = Results(again);
  EXPECT_EQ(results["failures"], 0);
  EXPECT_EQ(results["not_found"], 0);
}

TEST_P(SchemeServerTest, ClientsOfAnotherSchemeAreRefused) {
  const auto server = StartScheme();
  const Words run = {"-w", "C", "--records", "10", "--operations", "10"};
  ExpectRefused(Ycsb(run), 1, Address());
  Words other = run;
  other.insert(other.end(), {"--scheme", GetParam() == "redo" ? "raw" : "redo"});
  ExpectRefused(Ycsb(other), 1, "scheme " + GetParam());
}

TEST_P(SchemeServerTest, LostServerEndsTheRun) {
  const auto server = StartScheme();
  const Words words = {"-a",        Address(), "--scheme",     GetParam(),   "-w",           "A",
                       "--records", "1000",    "--operations", "1000000000", "--value-size", "16"};
  const auto ycsb = std::make_unique<Process>(Command("erda-ycsb", words));
  WaitUntil([&ycsb] { return ycsb->cpu_time() > std::chrono::milliseconds(200) || !ycsb->Running(); });
  server->Signal(SIGKILL);
  const auto ended = ycsb->Wait(std::chrono::seconds(20));
  ExpectRefused(ended, 1, Address());
  ExpectRefused(ended, 1, "unavailable");
}

TEST_P(SchemeServerTest, BadUsageIsOneLineAndHasItsExitCode) {
  const Words good = {"--scheme", GetParam(), "--pool", Pool(), "--size", "64M", "--listen", Address()};
  const auto with = [&good](const Words& more) {
    Words all = good;
    all.insert(all.end(), more.begin(), more.end());
    return Run("erda-scheme-server", all);
  };
  ExpectRefused(Run("erda-scheme-server", {}), 2, "erda-scheme-server: ");
  ExpectRefused(with({"--log-size", "many"}), 2, "erda-scheme-server: ");
  ExpectRefused(with({"--log-size", "4096"}), 2, Pool());
  ExpectRefused(with({"--log-size", "1G"}), 2, Pool());
  ExpectRefused(with({"--slot-bytes", "1"}), 2, "erda-scheme-server: ");
  ExpectRefused(with({"extra"}), 2, "erda-scheme-server: ");
  WriteFile(Pool(), std::string(64 << 20, 'x'));
  ExpectRefused(with({}), 1, Pool());  // Not a pool of a scheme.
}

class BytesTest : public ProgramsTest {};

TEST_F(BytesTest, BytesOfEachStoreStandBesideThePapers) {
  const auto ended =
      Run("erda-bench", {"bytes", "--value-bytes", "1024", "--keys", "200", "--json", Path("bytes.json")});
  ExpectFine(ended);
  EXPECT_NE(ended.out.find("erda/redo"), std::string::npos) << ended.out;
  const json report = json::parse(ReadFile(Path("bytes.json")), nullptr, false);
  ASSERT_TRUE(report.is_object());
  ASSERT_EQ(report["rows"].size(), 4U);
  for (const json& row : report["rows"]) {
    EXPECT_GE(row["update"]["counted"], row["update"]["paper"]);
    EXPECT_EQ(row["create"]["paper"], row["scheme"] == "erda" ? 1082 : 2132);
  }
  EXPECT_LT(report["ratios"][0]["erda_over_redo"]["update"]["counted"], 0.53);
  EXPECT_GT(report["ratios"][0]["erda_over_raw"]["update"]["counted"], 0.5);
}

class ServerTimeTest : public ProgramsTest {};

TEST_F(ServerTimeTest, YcsbReportsTheServersProcessorTime) {
  ExpectRefused(Ycsb({"-w", "C", "--server-pid", "0"}), 2, "--server-pid");
  ExpectRefused(Ycsb({"-w", "C", "--server-pid", "2147483647"}), 2, "--server-pid");
  const auto server = StartServer();
  const std::string path = Path("results.json");
  ExpectFine(Ycsb({"-w", "update", "--records", "100", "--operations", "2000", "--value-size", "100", "--json", path}));
  const json without = json::parse(ReadFile(path), nullptr, false);
  EXPECT_EQ(without["scheme"], "erda");
  EXPECT_FALSE(without["run"].contains("server_cpu_seconds"));
  EXPECT_GE(without["run"]["nvm_bytes"], 2000 * (36 + 24 + 100 + 16));
  // This very test is a process, too.
  ExpectFine(Ycsb({"-w", "C", "--records", "100", "--operations", "2000", "--server-pid", std::to_string(::getpid()),
                   "--json", path}));
  const json with = json::parse(ReadFile(path), nullptr, false);
  EXPECT_GE(with["run"]["server_cpu_seconds"], 0);
  EXPECT_EQ(with["run"]["nvm_bytes"], 0);
}

}  // namespace
}  // namespace erda
