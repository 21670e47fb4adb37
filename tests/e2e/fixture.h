// Servers and clients as users have them, for tests that look at the store from outside.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.h"
#include "erda/client.h"
#include "erda/server.h"

namespace erda {

enum class PoolKind {
  kDram,       // in this process; volatile, no flush
  kFile,       // in this process; process-safe, no flush
  kPowerSafe,  // a process of its own that is told to take an ordinary file for NVM: power-safe, server-flush
};

// ClientOptions of which some can be named and the others left out, without a warning.
struct How {
  Ack ack = Ack::kPersisted;
  PutPath put_path = PutPath::kAuto;
  uint32_t queue_depth = 64;
  uint32_t cache_entries = 65536;
  std::chrono::milliseconds timeout{5000};
  std::string token{};
  Polling polling = Polling::kAdaptive;

  [[nodiscard]] ClientOptions options() const;
};

// A running server of one of these kinds.
class TestServer {
 public:
  // Until it can be connected to; the test fails if it does not start.
  TestServer(PoolKind kind, const ServerOptions& options);
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer();

  [[nodiscard]] const std::string& address() const { return address_; }
  // Cleanly.
  void Stop();
  // To a process of its own.
  void Signal(int signal) const;
  // Of a server in this process.
  [[nodiscard]] Server& server() { return *server_; }

 private:
  void StartProcess(const ServerOptions& options);

  std::string address_;
  std::unique_ptr<Server> server_;
  pid_t pid_ = -1;
};

class E2eTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string Address() const { return "shm:" + Path("socket"); }
  // A pool of 64 MiB at Address().
  [[nodiscard]] ServerOptions Options(PoolKind kind) const;
  [[nodiscard]] std::unique_ptr<TestServer> Serve(PoolKind kind) const { return Serve(kind, Options(kind)); }
  [[nodiscard]] static std::unique_ptr<TestServer> Serve(PoolKind kind, const ServerOptions& options) {
    return std::make_unique<TestServer>(kind, options);
  }
  [[nodiscard]] std::unique_ptr<Client> Connect(const How& how = How()) const;

 private:
  const TemporaryFolder folder_;
};

class EveryPool : public E2eTest, public testing::WithParamInterface<PoolKind> {
 protected:
  [[nodiscard]] ServerOptions Options() const { return E2eTest::Options(GetParam()); }
  [[nodiscard]] std::unique_ptr<TestServer> Serve() const { return E2eTest::Serve(GetParam()); }
  [[nodiscard]] std::unique_ptr<TestServer> Serve(const ServerOptions& options) const {
    return E2eTest::Serve(GetParam(), options);
  }
};

[[nodiscard]] std::string PoolName(const testing::TestParamInfo<PoolKind>& kind);
inline const auto kEveryPool = testing::Values(PoolKind::kDram, PoolKind::kFile, PoolKind::kPowerSafe);

// Bytes of all kinds that follow from the seed.
[[nodiscard]] std::string Bytes(uint64_t seed, size_t size);

// What the server says of itself, by name.
using Info = std::map<std::string, std::string>;
[[nodiscard]] Info InfoOf(Client& client);
// The counters in it.
using Counters = std::map<std::string, uint64_t>;
[[nodiscard]] Counters CountersOf(Client& client);
// As CountersOf, once nothing is in flight any more.
[[nodiscard]] Counters SettledCountersOf(Client& client);

// Calls body(i) for each of so many, in threads of their own, until all have returned.
void AtOnce(uint32_t count, const std::function<void(uint32_t)>& body);

// Until `holds`; what it said last, after a minute.
bool WaitUntil(const std::function<bool()>& holds);

// Ends with this code, and a message that has these words.
void ExpectFails(const Status& status, Code code, std::string_view words);

}  // namespace erda
