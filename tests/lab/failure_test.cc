// Failures, and the messages that explain them.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "lab/fixture.h"

namespace erda {
namespace {

class FailureLab : public LabTest {};

TEST_F(FailureLab, ConnectingWithoutAServerIsUnavailable) {
  const auto client = Client::Connect(Address());
  EXPECT_EQ(client.status().code(), Code::kUnavailable) << client.status().ToString();
  EXPECT_NE(client.status().message().find("no server listens"), std::string_view::npos) << client.status().ToString();
}

TEST_F(FailureLab, ConnectingToAnUnreachableHostIsUnavailable) {
  const auto client = Client::Connect("verbs://127.0.0.1:7700");
  EXPECT_EQ(client.status().code(), Code::kUnavailable) << client.status().ToString();
  EXPECT_NE(client.status().message().find("127.0.0.1"), std::string_view::npos) << client.status().ToString();
}

// The process can lock little memory, and does not have the right to ignore the limit.
TEST_F(FailureLab, PoolLargerThanTheLockedMemoryLimitIsRefusedWithAHint) {
  const auto words = Command("erda-server", {"--pool", "dram:", "--size", "64M", "--listen", Address()});
  LabTest::Words command = {"/usr/bin/prlimit", "--memlock=1048576", "/usr/bin/setpriv", "--bounding-set",
                            "-ipc_lock",        "--inh-caps",        "-ipc_lock"};
  command.insert(command.end(), words.begin(), words.end());
  Process server(command);
  const Ended ended = server.Wait();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.err.find("RLIMIT_MEMLOCK) is 1048576 bytes"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("ulimit -l unlimited"), std::string::npos) << ended.err;
}

// Registered memory shares pages with other memory, such as the text of a command line. A child of fork needs the other
// memory, too.
TEST_F(FailureLab, ChildOfAForkKeepsItsOtherMemory) {
  auto fabric = fabric::OpenFabric(Address(), fabric::Role::kListen);
  ASSERT_TRUE(fabric.ok()) << fabric.status().ToString();
  std::vector<std::vector<std::byte>> registered;
  std::vector<std::string> others;
  std::vector<std::unique_ptr<fabric::Region>> regions;
  for (int i = 0; i < 50; ++i) {
    registered.emplace_back(3000);
    others.emplace_back(100, 'x');
    auto region = (*fabric)->Register({registered.back(), -1, -1}, fabric::Access::kRemoteReadWrite);
    ASSERT_TRUE(region.ok()) << region.status().ToString();
    regions.push_back(*std::move(region));
  }
  const pid_t child = ::fork();
  if (child == 0) {
    size_t sum = 0;
    for (const std::string& other : others) sum += std::strlen(other.c_str());
    ::_exit(sum == 5000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

class RemovalLab : public LabTest {};

// This test runs in a separate process, the last one of the guest. The kernel ends the removal when no process has the
// device open. librdmacm keeps the device open as long as its process lives.
TEST_F(RemovalLab, RemovedDeviceEndsTheClientsCallsAndLeavesTheServerRunning) {
  WipeDevice();
  const auto server = StartServer();
  const auto client = Connect();
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->Put("key", "value").ok());
  const std::string link = Process({"/usr/bin/rdma", "link", "show"}).Wait().out;  // Such as "... netdev ve0".
  const size_t netdev = link.find("netdev ") + 7;
  ASSERT_LT(netdev, link.size()) << link;
  const std::string interface = link.substr(netdev, link.find_first_of(" \n", netdev) - netdev);
  // Soft-RoCE goes with its network interface.
  Process({"/bin/sh", "-c", "ip link delete " + interface + " > /dev/null 2>&1 &"}).Wait();
  Status status;
  EXPECT_TRUE(WaitUntil([&] {
    status = client->Get("key").status();
    return !status.ok();
  }));
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
  EXPECT_FALSE(client->Put("key", "other").ok());
  EXPECT_TRUE(server->Running()) << server->err();
  StopServer(*server);
}

}  // namespace
}  // namespace erda
