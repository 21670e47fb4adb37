// erda-server under a service manager: its reports to the manager, and its unit.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

// A service manager's socket. The programs that the test starts find it in their environment.
class Manager {
 public:
  // A path, or @ and a name without a file.
  explicit Manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(&address.sun_path[0], name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0) << name;
    const timeval limit = {.tv_sec = 60, .tv_usec = 0};
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() { ::unsetenv("NOTIFY_SOCKET"); }

  // Waits for the next message.
  [[nodiscard]] std::string Told() const { return Receive(0); }
  // Returns the next message, if it has come.
  [[nodiscard]] std::string ToldAlready() const { return Receive(MSG_DONTWAIT); }

 private:
  [[nodiscard]] std::string Receive(int flags) const {
    std::array<char, 256> message{};
    const ssize_t size = ::recv(socket_.get(), message.data(), message.size(), flags);
    return size < 0 ? "nothing" : std::string(message.data(), static_cast<size_t>(size));
  }

  const UniqueFd socket_;
};

class ServiceTest : public ProgramsTest {};

TEST_F(ServiceTest, ManagerIsToldOfReadinessAndOfTheStop) {
  for (const std::string& name : {Path("notify"), "@" + Path("notify")}) {
    SCOPED_TRACE(name);
    const Manager manager(name);
    Process server(ServerCommand());
    EXPECT_EQ(manager.Told(), "READY=1");
    ExpectFine(Cli({"put", "key", "value"}));  // Works at once.
    EXPECT_EQ(manager.ToldAlready(), "nothing");
    server.Signal(SIGTERM);
    EXPECT_EQ(manager.Told(), "STOPPING=1");
    ExpectFine(server.Wait());
    EXPECT_EQ(manager.ToldAlready(), "nothing");
  }
}

TEST_F(ServiceTest, AServerThatDoesNotServeIsNotReady) {
  const Manager manager(Path("notify"));
  EXPECT_EQ(ServerWith({"--pool", Pool(), "--listen", Address()}).code, 2);  // It has no size.
  ExpectFine(ServerWith({"--pool", Pool(), "--listen", Address(), "--check"}));
  EXPECT_EQ(manager.ToldAlready(), "nothing");
}

TEST_F(ServiceTest, ServerServesWithoutItsManager) {
  for (const std::string& name : {Path("nobody"), std::string(200, 'x'), std::string()}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    Process server(ServerCommand());
    EXPECT_TRUE(WaitUntil([&] { return server.err().find("NOTIFY_SOCKET: ") != std::string::npos; })) << name;
    ExpectFine(Cli({"put", "key", "value"}));
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait().code, 0);
  }
  ::unsetenv("NOTIFY_SOCKET");
}

TEST_F(ServiceTest, TheUnitIsSoundAndHardened) {
  ASSERT_EQ(Process({"/bin/sh", "-c", "command -v systemd-analyze"}).Wait().code, 0) << "tools/install-deps test";
  const std::string unit = ReadFile(ERDA_UNIT);
  const std::regex program("\nExecStart=[^ ]*/erda-server ");
  ASSERT_TRUE(std::regex_search(unit, program));
  EXPECT_NE(unit.find("\nType=notify\n"), std::string::npos);
  EXPECT_NE(unit.find("\nLimitMEMLOCK=infinity\n"), std::string::npos);
  // As installed, except for the program's place.
  WriteFile(Path("erda-server.service"),
            std::regex_replace(unit, program, "\nExecStart=" + BinDir() + "/erda-server "));
  const Ended verified =
      Process({"/usr/bin/env", "systemd-analyze", "--man=no", "verify", Path("erda-server.service")}).Wait();
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_EQ(verified.err.find(Path("erda-server.service")), std::string::npos) << verified.err;
  // 100 is a unit with no protection at all.
  const Ended security = Process({"/usr/bin/env", "systemd-analyze", "security", "--offline=yes", "--threshold=25",
                                  "--no-pager", Path("erda-server.service")})
                             .Wait();
  EXPECT_EQ(security.code, 0) << security.out << security.err;
}

}  // namespace
}  // namespace erda
