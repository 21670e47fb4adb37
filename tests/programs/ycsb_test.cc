// erda-ycsb against a real erda-server.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "programs/fixture.h"

namespace erda {
namespace {

using nlohmann::json;

class YcsbTest : public ProgramsTest {
 protected:
  // Runs with --json. Returns the parsed results.
  json Results(Words arguments) {
    const std::string path = Path("results.json");
    arguments.insert(arguments.end(), {"--json", path});
    const auto ended = Ycsb(arguments);
    ExpectFine(ended);
    EXPECT_NE(ended.out.find("ops/s"), std::string::npos) << ended.out;
    return json::parse(ReadFile(path), nullptr, false);
  }

  [[nodiscard]] std::unique_ptr<Process> StartYcsb(const Words& arguments) const {
    Words all = {"-a", Address()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    auto ycsb = std::make_unique<Process>(Command("erda-ycsb", all));
    // It takes processor time only once it is connected.
    WaitUntil([&ycsb] { return ycsb->cpu_time() > std::chrono::milliseconds(200) || !ycsb->Running(); });
    EXPECT_TRUE(ycsb->Running()) << ycsb->err();
    return ycsb;
  }
};

void ExpectLatencies(const json& times) {
  if (times["count"] == 0) return;
  EXPECT_GT(times["p50_ns"], 0);
  EXPECT_LE(times["p50_ns"], times["p90_ns"]);
  EXPECT_LE(times["p90_ns"], times["p99_ns"]);
  EXPECT_LE(times["p99_ns"], times["p999_ns"]);
  EXPECT_LE(times["p999_ns"], times["max_ns"]);
  EXPECT_GT(times["mean_ns"], 0);
  EXPECT_LE(times["mean_ns"], times["max_ns"]);
}

TEST_F(YcsbTest, RunsEachWorkload) {
  const auto server = StartServer({"--shards", "2"});
  for (const std::string workload : {"A", "B", "C", "D", "F", "rmw", "update"}) {
    for (const auto& [threads, depth] : {std::pair("1", "1"), std::pair("2", "8")}) {
      SCOPED_TRACE(workload + ", threads " + threads + ", depth " + depth);
      const json results = Results({"--workload", workload, "--records", "1000", "--operations", "3001", "--value-size",
                                    "200", "--threads", threads, "--depth", depth, "--verify"});
      ASSERT_TRUE(results.is_object());
      EXPECT_EQ(results["workload"], workload);
      EXPECT_EQ(results["records"], 1000);
      EXPECT_EQ(results["operations"], 3001);
      EXPECT_EQ(results["value_size"], 200);
      EXPECT_EQ(std::to_string(results["threads"].get<int>()), threads);
      EXPECT_EQ(std::to_string(results["depth"].get<int>()), depth);
      EXPECT_GT(results["load"]["seconds"], 0);
      EXPECT_GT(results["load"]["ops_per_second"], 0);
      const json& run = results["run"];
      EXPECT_GT(run["seconds"], 0);
      EXPECT_GT(run["ops_per_second"], 0);
      EXPECT_GE(run["slowest_share"], 0);
      EXPECT_LE(run["slowest_share"], 1);
      EXPECT_TRUE(threads != std::string("1") || run["slowest_share"] == 1);
      EXPECT_EQ(results["not_found"], 0);
      EXPECT_EQ(results["failures"], 0);

      const int gets = run["get"]["count"];
      const int puts = run["put"]["count"];
      const bool has_rmw = workload == "F" || workload == "rmw";
      EXPECT_EQ(run.contains("rmw"), has_rmw);
      EXPECT_EQ(has_rmw ? gets : gets + puts, 3001);  // Each put of a read-modify-write comes after a get.
      EXPECT_EQ(gets == 0, workload == "update");
      EXPECT_EQ(puts == 0, workload == "C");
      EXPECT_EQ(has_rmw ? run["rmw"]["count"].get<int>() : puts, puts);
      for (const char* kind : {"get", "put", "rmw"}) {
        if (run.contains(kind)) ExpectLatencies(run[kind]);
      }
    }
  }
  StopServer(*server);
}

TEST_F(YcsbTest, PutsOnEachPathAndWithEachAck) {
  const auto server = StartServer();
  for (const char* path : {"auto", "inline", "reserve"}) {
    for (const char* ack : {"placed", "persisted"}) {
      for (const char* depth : {"1", "16"}) {
        const auto ended = Ycsb({"-w", "A", "--records", "300", "--operations", "1000", "--path", path, "--ack", ack,
                                 "--depth", depth, "--verify"});
        ExpectFine(ended);
      }
    }
  }
  StopServer(*server);
}

TEST_F(YcsbTest, RunWithoutLoadingUsesExistingRecords) {
  const auto server = StartServer();
  json results = Results({"-w", "C", "--no-load", "--records", "100", "--operations", "500"});
  EXPECT_EQ(results["not_found"], 500);
  results = Results({"-w", "C", "--records", "100", "--operations", "500"});
  EXPECT_EQ(results["not_found"], 0);
  results = Results({"-w", "C", "--no-load", "--records", "100", "--operations", "500", "--verify", "--seed", "9"});
  EXPECT_EQ(results["not_found"], 0);
  EXPECT_EQ(results["load"]["seconds"], 0.0);
}

TEST_F(YcsbTest, TheWarmUpIsNotMeasured) {
  const auto server = StartServer();
  for (const char* workload : {"C", "D"}) {
    const json results =
        Results({"-w", workload, "--records", "100", "--operations", "500", "--warm-up", "2000", "--threads", "2"});
    EXPECT_EQ(results["warm_up"], 2000);
    EXPECT_EQ(results["run"]["get"]["count"].get<int>() + results["run"]["put"]["count"].get<int>(), 500) << workload;
    EXPECT_EQ(results["not_found"], 0);
  }
  StopServer(*server);
}

TEST_F(YcsbTest, TakesWorkloadFilesAndPropertiesOfYcsb) {
  const auto server = StartServer();
  WriteFile(Path("workloada"),
            "recordcount=100\noperationcount=200\nworkload=core\nreadproportion=0.5\n"
            "updateproportion=0.5\nrequestdistribution=zipfian\nfieldcount=2\nfieldlength=8\n");
  json results = Results({"-P", Path("workloada"), "-p", "operationcount=300", "-p", "requestdistribution=uniform",
                          "-threads", "2", "--records", "150", "-s", "--verify"});
  EXPECT_EQ(results["workload"], "A");
  EXPECT_EQ(results["distribution"], "uniform");
  EXPECT_EQ(results["operations"], 300);
  EXPECT_EQ(results["records"], 150);
  EXPECT_EQ(results["threads"], 2);
  EXPECT_EQ(results["value_size"], 16);
  results = Results({"-P", Path("workloada"), "-t"});
  EXPECT_EQ(results["load"]["seconds"], 0.0);
  EXPECT_EQ(results["run"]["operations"], 200);
  EXPECT_EQ(results["not_found"], 0);
  results = Results({"-P", Path("workloada"), "-w", "C", "-run", "--distribution", "latest"});
  EXPECT_EQ(results["workload"], "C");
  EXPECT_EQ(results["distribution"], "latest");
  const auto noted = Ycsb({"-P", Path("workloada"), "-p", "redis.host=here", "-load"});
  EXPECT_EQ(noted.code, 0);
  EXPECT_EQ(noted.err, "erda-ycsb: these properties have no meaning here: redis.host\n");
  StopServer(*server);
}

TEST_F(YcsbTest, LoadsAlone) {
  const auto server = StartServer();
  const json results = Results({"--load-only", "--load-depth", "1", "--records", "500"});
  EXPECT_GT(results["load"]["ops_per_second"], 0);
  EXPECT_EQ(results["run"]["operations"], 0);
  EXPECT_EQ(Results({"-w", "C", "--no-load", "--records", "500", "--operations", "100"})["not_found"], 0);
  StopServer(*server);
}

TEST_F(YcsbTest, RunEndsAfterItsSeconds) {
  const auto server = StartServer();
  const json results = Results({"-w", "A", "--records", "100", "--seconds", "0.2", "--threads", "2"});
  const json& run = results["run"];
  EXPECT_GE(run["seconds"], 0.2);
  EXPECT_LT(run["seconds"], 10);
  EXPECT_GT(run["operations"], 0);
  EXPECT_EQ(run["operations"].get<uint64_t>(),
            run["get"]["count"].get<uint64_t>() + run["put"]["count"].get<uint64_t>());
  StopServer(*server);
}

TEST_F(YcsbTest, SomeThreadsWriteBesideReaders) {
  const auto server = StartServer();
  const json results =
      Results({"--writers", "1", "--threads", "3", "--records", "100", "--seconds", "0.3", "--verify"});
  EXPECT_EQ(results["writers"], 1);
  EXPECT_GT(results["run"]["get"]["count"], 0);
  EXPECT_GT(results["run"]["put"]["count"], 0);
  EXPECT_EQ(results["records_after"], 100);
  StopServer(*server);
}

TEST_F(YcsbTest, CountsTheRecordsThatItInserts) {
  const auto server = StartServer();
  const json results = Results({"-w", "D", "--records", "100", "--operations", "1000", "--warm-up", "100"});
  const int after = results["records_after"];
  EXPECT_GE(after - 100, results["run"]["put"]["count"].get<int>());
  // All of them are there.
  EXPECT_EQ(Results({"-w", "C", "--no-load", "--records", std::to_string(after), "--operations", "5000",
                     "--distribution", "uniform"})["not_found"],
            0);
  StopServer(*server);
}

TEST_F(YcsbTest, HeldRunBeginsWithALine) {
  const auto server = StartServer();
  Process held(Command("erda-ycsb", {"-a", Address(), "-w", "C", "--records", "100", "--operations", "10", "--hold"}),
               "go\n");
  const auto ended = held.Wait();
  ExpectFine(ended);
  EXPECT_TRUE(ended.out.starts_with("ready\nworkload C")) << ended.out;
  StopServer(*server);
}

TEST_F(YcsbTest, ScansAreRefusedWithAReason) {
  for (const Words& scans : {Words{"-w", "E"}, Words{"-w", "e"}, Words{"-p", "scanproportion=0.95"}}) {
    ExpectRefused(Ycsb(scans), 2, "Erda finds keys by their hash");
  }
}

TEST_F(YcsbTest, VerifyFindsAValueThatIsNotItsOwn) {
  const auto server = StartServer();
  ExpectFine(Ycsb({"-w", "C", "--records", "1", "--operations", "1", "--value-size", "16"}));
  // Of another size.
  ExpectRefused(Ycsb({"-w", "C", "--no-load", "--records", "1", "--operations", "1", "--value-size", "32", "--verify"}),
                1, Address());
}

TEST_F(YcsbTest, BadUsageIsOneLineAndHasItsExitCode) {
  const std::vector<Words> bad = {{},
                                  {"-w", "E"},
                                  {"-w", "A", "--threads", "0"},
                                  {"-w", "A", "--depth", "0"},
                                  {"-w", "A", "--depth", "257"},
                                  {"-w", "A", "--records", "0"},
                                  {"-w", "A", "--operations", "0"},
                                  {"-w", "A", "--operations", "many"},
                                  {"-w", "A", "--value-size", "2G"},
                                  {"-w", "A", "--value-size", "15", "--verify"},
                                  {"-w", "A", "--seed", "-1"},
                                  {"-w", "A", "--json", Path("nowhere/results")},
                                  {"-w", "A", "--distribution", "hotspot"},
                                  {"-w", "A", "--seconds", "0"},
                                  {"-w", "A", "--seconds", "1s"},
                                  {"-w", "D", "--seconds", "1"},
                                  {"-w", "A", "--no-load", "--load-only"},
                                  {"-w", "A", "--writers", "1", "--threads", "2", "--seconds", "1"},
                                  {"--writers", "1", "--threads", "2"},
                                  {"--writers", "1", "--seconds", "1"},
                                  {"-P", Path("none")},
                                  {"-p", "recordcount"},
                                  {"-w", "A", "-p", "recordcount=many"},
                                  {"-w", "A", "extra"},
                                  {"-w", "A", "--unknown"}};
  for (const Words& arguments : bad) ExpectRefused(Ycsb(arguments), 2, "erda-ycsb: ");
}

TEST_F(YcsbTest, ValuesThatThePoolCannotTakeAreRefused) {
  const auto server = StartServer();
  ExpectRefused(Ycsb({"-w", "A", "--value-size", "64M"}), 2, Address());
}

TEST_F(YcsbTest, AddressNobodyListensOnIsAnError) {
  ExpectRefused(Ycsb({"-w", "A", "--timeout-ms", "500"}), 1, Address());
}

// The server goes away during a run. The run ends soon after, and names the address.
class LostServerTest : public YcsbTest {
 protected:
  void ExpectEndsAfter(int signal, const Words& more) {
    const auto server = StartServerWith({"--pool", "dram:", "--size", "256M", "--listen", Address()});
    Words arguments = {"-w", "B", "--records", "1000", "--operations", "1000000000", "--value-size", "16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto ycsb = StartYcsb(arguments);
    server->Signal(signal);
    const auto ended = ycsb->Wait(std::chrono::seconds(20));
    ExpectRefused(ended, 1, Address());
    ExpectRefused(ended, 1, "unavailable");
    EXPECT_EQ(server->Wait().code, signal == SIGKILL ? 128 + SIGKILL : 0);
  }
};

TEST_F(LostServerTest, RunEndsWhenItsServerIsKilledDuringOneCall) { ExpectEndsAfter(SIGKILL, {}); }
TEST_F(LostServerTest, RunEndsWhenItsServerIsKilledDuringManyCalls) { ExpectEndsAfter(SIGKILL, {"--depth", "32"}); }
TEST_F(LostServerTest, RunEndsWhenItsServerIsKilledDuringReservedPuts) {
  ExpectEndsAfter(SIGKILL, {"--depth", "32", "--path", "reserve"});
}
TEST_F(LostServerTest, RunOfTwoThreadsEndsWhenItsServerIsKilled) { ExpectEndsAfter(SIGKILL, {"--threads", "2"}); }
TEST_F(LostServerTest, RunEndsWhenItsServerIsStopped) { ExpectEndsAfter(SIGTERM, {"--depth", "4"}); }

TEST_F(YcsbTest, GetsNeedNothingOfTheServersProcessor) {
  const auto server = StartServer();
  ExpectFine(Ycsb({"-w", "C", "--records", "1000", "--operations", "1"}));
  const auto ycsb = StartYcsb({"-w", "C", "--no-load", "--records", "1000", "--operations", "4000000", "--verify"});
  server->Signal(SIGSTOP);
  const auto ended = ycsb->Wait();
  server->Signal(SIGCONT);
  ExpectFine(ended);
  EXPECT_EQ(ended.out.find("found nothing"), std::string::npos) << ended.out;
  StopServer(*server);
}

}  // namespace
}  // namespace erda
