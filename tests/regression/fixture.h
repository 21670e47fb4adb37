// The tests of former bugs share this fixture: a folder, servers in this process and in another one, and clients.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "erda/client.h"
#include "erda/server.h"
#include "paths.h"

namespace erda {

// Waits until `holds` returns true, or for `limit`. Returns the last answer of `holds`.
inline bool WaitUntil(const std::function<bool()>& holds, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Retries the operation while it ends with kUnavailable: the client may have to connect again first.
inline Result<std::string> GetAgain(Client& client, const std::string& key) {
  Result<std::string> value = Status(Code::kInternal);
  WaitUntil([&] {
    value = client.Get(key);
    return value.status().code() != Code::kUnavailable;
  });
  return value;
}
inline Status PutAgain(Client& client, const std::string& key, const std::string& value) {
  Status status;
  WaitUntil([&] {
    status = client.Put(key, value);
    return status.code() != Code::kUnavailable;
  });
  return status;
}

// An erda-server with a volatile pool. The process never outlives the test, also if it is frozen.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& address) {
    std::vector<std::string> words = {BinDir() + "/erda-server", "--pool=dram:", "--size=64M", "--listen=" + address};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int out[2] = {-1, -1};
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      close(out[1]);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(out[1]);
    // The server prints one line when clients can connect.
    std::string line;
    for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line.push_back(c);
    EXPECT_NE(line.find("ready"), std::string::npos) << words[0] << " said: " << line;
    close(out[0]);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() { Kill(); }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // The server keeps its connections, and answers no more requests.
  void Freeze() const {
    if (pid_ <= 0) return;
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  [[nodiscard]] size_t Descriptors() const {
    std::error_code error;
    size_t count = 0;
    const std::filesystem::path folder = "/proc/" + std::to_string(pid_) + "/fd";
    for (auto it = std::filesystem::directory_iterator(folder, error); it != std::filesystem::directory_iterator();
         it.increment(error)) {
      ++count;
    }
    EXPECT_FALSE(error) << error.message();
    return count;
  }

 private:
  pid_t pid_ = -1;
};

class RegressionTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string Address() const { return "shm:" + Path("socket"); }

  [[nodiscard]] ServerOptions Options(const std::string& pool) const {
    ServerOptions options;
    options.pool = pool;
    options.pool_size = 64 << 20;
    options.listen = {Address()};
    return options;
  }
  [[nodiscard]] ServerOptions DramOptions() const { return Options("dram:"); }
  [[nodiscard]] ServerOptions FileOptions() const { return Options(Path("pool")); }

  [[nodiscard]] static std::unique_ptr<Server> Serve(const ServerOptions& options) {
    auto server = Server::Open(options);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    if (!server.ok()) return nullptr;
    const Status started = (*server)->Start();
    EXPECT_TRUE(started.ok()) << started.ToString();
    return *std::move(server);
  }
  [[nodiscard]] std::unique_ptr<Client> Connect(const ClientOptions& options = ClientOptions()) const {
    auto client = Client::Connect(Address(), options);
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? *std::move(client) : nullptr;
  }

 private:
  const TemporaryFolder folder_;
};

}  // namespace erda
