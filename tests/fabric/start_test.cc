// Many servers start at once at an address where a dead one left its socket: one listens, and the others get an error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "base/unique_fd.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/shm/socket.h"

namespace erda::fabric {
namespace {

// Leaves a socket without a listener, as a killed server does.
void LeaveStaleSocket(const std::string& path) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

TEST(StartTest, OneOfManyThatStartAtOnceListensAtAStaleSocket) {
  constexpr size_t kServers = 4;
  constexpr int kStarts = 300;
  const TemporaryFolder folder;
  const std::string path = (folder / "socket").string();
  for (int round = 0; round < kStarts && !testing::Test::HasFailure(); ++round) {
    LeaveStaleSocket(path);
    std::vector<Result<UniqueFd>> sockets;
    for (size_t i = 0; i < kServers; ++i) sockets.emplace_back(Status(Code::kInternal));
    std::atomic<size_t> ready{0};
    std::vector<std::thread> servers;
    for (size_t i = 0; i < kServers; ++i) {
      servers.emplace_back([&, i] {
        ++ready;
        while (ready.load() != kServers) std::this_thread::yield();
        sockets[i] = shm::ListenOn(path);
      });
    }
    for (std::thread& server : servers) server.join();
    size_t listening = 0;
    for (const auto& socket : sockets) {
      if (socket.ok()) {
        ++listening;
      } else {
        EXPECT_EQ(socket.status().code(), Code::kUnavailable) << socket.status().ToString();
        EXPECT_NE(socket.status().message().find("another server listens there"), std::string_view::npos)
            << socket.status().ToString();
      }
    }
    EXPECT_EQ(listening, 1U) << "round " << round;
    EXPECT_TRUE(shm::ConnectTo(path).ok()) << "round " << round << ": the one that listens is not found";
    EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
    std::filesystem::remove(path);
  }
}

TEST(StartTest, LockThatAKilledServerLeftIsTaken) {
  const TemporaryFolder folder;
  const std::string path = (folder / "socket").string();
  const UniqueFd left(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(left);
  EXPECT_TRUE(shm::ListenOn(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
}

TEST(StartTest, AddressWhoseLockAnotherHoldsIsNamed) {
  const TemporaryFolder folder;
  const std::string path = (folder / "socket").string();
  const UniqueFd other(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const auto listening = shm::ListenOn(path);
  EXPECT_EQ(listening.status().code(), Code::kUnavailable);
  EXPECT_NE(listening.status().message().find(path + ".lock"), std::string_view::npos) << listening.status().ToString();
  EXPECT_TRUE(std::filesystem::exists(path + ".lock"));
}

}  // namespace
}  // namespace erda::fabric
