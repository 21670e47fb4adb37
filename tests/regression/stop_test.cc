// Servers that stop or die while clients are connected.
#include <atomic>

#include "regression/fixture.h"

namespace erda {
namespace {

class StopTest : public RegressionTest {};

// The pool stayed mapped in the client. After a clean stop the client wrote the value there, found it placed, and
// called that a success. But the stop had already closed the pool without the value.
TEST_F(StopTest, ReservedPutDuringACleanStopSurvivesOrIsUnavailable) {
  auto server = Serve(FileOptions());
  const auto writer = Connect();
  ASSERT_TRUE(writer->Put("key", "old").ok());
  const std::string value(100'000, 'n');
  Status outcome(Code::kInternal);
  ASSERT_TRUE(writer->PutAsync("key", value, [&](Status put) { outcome = std::move(put); }).ok());
  ASSERT_TRUE(WaitUntil([&] { return server->stats().puts_reserved == 1; }));
  ASSERT_TRUE(server->Stop().ok());
  server.reset();
  ASSERT_TRUE(writer->Drain().ok());

  server = Serve(FileOptions());
  const auto found = Connect()->Get("key");
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  if (outcome.ok()) {
    EXPECT_TRUE(*found == value) << "its put was acknowledged";
  } else {
    EXPECT_EQ(outcome.code(), Code::kUnavailable) << outcome.ToString();
    EXPECT_TRUE(*found == value || *found == "old");
  }
}

// A clean stop comes while a client puts as fast as it can.
TEST_F(StopTest, NoAcknowledgedPutIsLostByAStopUnderLoad) {
  for (int round = 0; round < 5; ++round) {
    ServerOptions options = Options(Path("pool" + std::to_string(round)));
    options.pool_size = 128 << 20;
    auto server = Serve(options);
    const auto writer = Connect();
    ASSERT_TRUE(writer->Put("key", "0").ok());
    std::atomic<int> acknowledged{0};
    std::thread writing([&] {
      for (int i = 1; i <= 350; ++i) {
        std::string value = std::to_string(i) + " ";
        value.resize(256 << 10, 'x');
        if (!writer->Put("key", value).ok()) break;
        acknowledged = i;
      }
    });
    EXPECT_TRUE(WaitUntil([&] { return acknowledged >= 3 + round; }));
    std::this_thread::sleep_for(std::chrono::microseconds(137 * round));
    EXPECT_TRUE(server->Stop().ok());
    server.reset();
    writing.join();

    server = Serve(options);
    const auto found = Connect()->Get("key");
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_GE(std::stoi(*found), acknowledged);
    std::filesystem::remove(options.pool);
  }
}

class RestartTest : public StopTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Pools, RestartTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& file) { return file.param ? "File" : "Dram"; });

// An idle client continued to read the old server's memory. It read the whole old pool if that was volatile. Of a file,
// it read the regions as they were before the restart.
TEST_P(RestartTest, AnIdleClientDoesNotReadAPoolWhoseServerHasStopped) {
  ServerOptions options = GetParam() ? FileOptions() : DramOptions();
  options.region_size = 1 << 20;
  options.segment_size = 1 << 18;
  auto server = Serve(options);
  const auto idle = Connect();
  ASSERT_TRUE(idle->Put("key", "old").ok());
  ASSERT_EQ(*idle->Get("key"), "old");
  ASSERT_TRUE(server->Stop().ok());
  server.reset();
  server = Serve(options);
  const auto writer = Connect();
  // These puts go into a region that the new server has linked.
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(writer->Put("filler" + std::to_string(i), std::string(100'000, 'f')).ok());
  }
  ASSERT_TRUE(writer->Put("key", "new").ok());
  const auto first = idle->Get("key");
  EXPECT_TRUE(first.ok() ? *first == "new" : first.status().code() == Code::kUnavailable)
      << (first.ok() ? *first : first.status().ToString());
  const auto then = GetAgain(*idle, "key");
  ASSERT_TRUE(then.ok()) << then.status().ToString();
  EXPECT_EQ(*then, "new");
}

TEST_P(RestartTest, GetAfterTheStopIsUnavailable) {
  auto server = Serve(GetParam() ? FileOptions() : DramOptions());
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "value").ok());
  ASSERT_TRUE(server->Stop().ok());
  EXPECT_EQ(client->Get("key").status().code(), Code::kUnavailable);
  EXPECT_EQ(client->Get("missing").status().code(), Code::kUnavailable);
}

// A server that is killed tells no client about its end.
TEST_F(StopTest, AnIdleClientDoesNotReadAPoolWhoseServerWasKilled) {
  ServerProcess killed(Address());
  const auto idle = Connect();
  ASSERT_TRUE(idle->Put("key", "old").ok());
  ASSERT_EQ(*idle->Get("key"), "old");
  killed.Kill();
  const ServerProcess next(Address());
  ASSERT_TRUE(Connect()->Put("key", "new").ok());
  const auto first = idle->Get("key");
  EXPECT_TRUE(first.ok() ? *first == "new" : first.status().code() == Code::kUnavailable)
      << (first.ok() ? *first : first.status().ToString());
  const auto then = GetAgain(*idle, "key");
  ASSERT_TRUE(then.ok()) << then.status().ToString();
  EXPECT_EQ(*then, "new");
}

TEST_F(StopTest, GetAfterAKillOfTheServerIsUnavailable) {
  ServerProcess server(Address());
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "value").ok());
  server.Kill();
  EXPECT_EQ(client->Get("key").status().code(), Code::kUnavailable);
}

// The client forked, and the child kept the socket's description open. So the queue kept the registration of a channel
// that had been destroyed, and the next event used a dangling pointer.
TEST_F(StopTest, AClientThatForkedOutlivesItsServer) {
  ServerProcess killed(Address());
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "value").ok());
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  ASSERT_GT(child, 0);
  killed.Kill();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client->Put("key", "nobody").code(), Code::kUnavailable);
  {
    const ServerProcess next(Address());
    EXPECT_TRUE(PutAgain(*client, "key", "again").ok());
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client->Put("key", std::to_string(i)).ok());
    EXPECT_EQ(*client->Get("key"), "999");
  }
  EXPECT_EQ(client->Put("key", "nobody").code(), Code::kUnavailable);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace erda
