// Servers and clients as users have them, for tests that see the store from outside.
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
  kDram,       // In this process: volatile, no flush method.
  kFile,       // In this process: process-safe, no flush method.
  kPowerSafe,  // A separate process that takes an ordinary file for NVM: power-safe, server-flush.
  kJournaled,  // In this process, with a journal beside the pool: power-safe, server-flush.
  kFronted,    // The same, with a front that is a file.
};

// ClientOptions of which a test names some and leaves the others out, without a warning.
struct How {
  Ack ack = Ack::kPersisted;
  PutPath put_path = PutPath::kAuto;
  uint32_t queue_depth = 64;
  uint32_t cache_entries = 65536;
  std::chrono::milliseconds timeout{60'000};  // The server answers in time, even if the processors are busy.
  std::string token{};
  Polling polling = Polling::kAdaptive;
  bool wait_for_room = false;

  [[nodiscard]] ClientOptions options() const;
};

// A running server with a pool of one kind.
class TestServer {
 public:
  // Waits until clients can connect. The test fails if the server does not start.
  TestServer(PoolKind kind, const ServerOptions& options);
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer();

  [[nodiscard]] const std::string& address() const { return address_; }
  // Stops the server cleanly.
  void Stop();
  // Sends a signal to a server in a separate process.
  void Signal(int signal) const;
  // Requires: the server runs in this process.
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
  // Throws if there is no connection, so that only this test fails.
  [[nodiscard]] std::unique_ptr<Client> Connect(const How& how = How()) const;

 private:
  const TemporaryFolder folder_;
};

class EveryPool : public E2eTest, public testing::WithParamInterface<PoolKind> {
 protected:
  [[nodiscard]] ServerOptions Options() const { return E2eTest::Options(GetParam()); }
  // For a pool that is soon full.
  [[nodiscard]] ServerOptions SmallOptions() const {
    ServerOptions options = Options();
    options.pool_size = 1 << 20;
    options.region_size = 128 << 10;
    options.segment_size = 16 << 10;
    return options;
  }
  [[nodiscard]] std::unique_ptr<TestServer> Serve() const { return E2eTest::Serve(GetParam()); }
  [[nodiscard]] std::unique_ptr<TestServer> Serve(const ServerOptions& options) const {
    return E2eTest::Serve(GetParam(), options);
  }
};

// Returns true if a power cut takes nothing from a pool of this kind. Then the shard flushes what clients place.
[[nodiscard]] constexpr bool IsPowerSafe(PoolKind kind) {
  return kind == PoolKind::kPowerSafe || kind == PoolKind::kJournaled || kind == PoolKind::kFronted;
}

[[nodiscard]] std::string PoolName(const testing::TestParamInfo<PoolKind>& kind);
inline const auto kEveryPool =
    testing::Values(PoolKind::kDram, PoolKind::kFile, PoolKind::kPowerSafe, PoolKind::kJournaled, PoolKind::kFronted);

// Returns bytes of all kinds, which follow from the seed.
[[nodiscard]] std::string Bytes(uint64_t seed, size_t size);

// The server's information about itself, by name.
using Info = std::map<std::string, std::string>;
[[nodiscard]] Info InfoOf(Client& client);
// The counters in Info.
using Counters = std::map<std::string, uint64_t>;
[[nodiscard]] Counters CountersOf(Client& client);
// Returns CountersOf as soon as nothing is in flight any more.
[[nodiscard]] Counters SettledCountersOf(Client& client);

// Calls body(i) for each i below `count`, each in a separate thread, until all have returned.
void AtOnce(uint32_t count, const std::function<void(uint32_t)>& body);

// Waits until `holds` returns true, or for a minute. Returns the last answer of `holds`.
bool WaitUntil(const std::function<bool()>& holds);

// Expects this code, and a message with these words.
void ExpectFails(const Status& status, Code code, std::string_view words);

}  // namespace erda
