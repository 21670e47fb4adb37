// erda-server is killed in the middle of puts and deletes of real clients, again and again. Every acknowledged write
// survives, at the ack level that it asked for.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "erda/client.h"
#include "programs/fixture.h"

namespace erda {
namespace {

using Value = std::optional<std::string>;  // Nothing: the key is absent.

// The knowledge of one client about its keys.
class Writer {
 public:
  Writer(std::string address, int number, Ack ack)
      : address_(std::move(address)), number_(number), ack_(ack), random_(static_cast<uint64_t>(number)) {}

  void Connect() {
    ClientOptions options;
    options.ack = ack_;
    options.put_path = number_ % 2 == 0 ? PutPath::kAuto : PutPath::kReserve;
    options.queue_depth = kDepth;
    options.timeout = std::chrono::minutes(1);
    auto client = Client::Connect(address_, options);
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    client_ = *std::move(client);
  }

  // Puts and deletes until the server is gone.
  void Run(std::atomic<int>* acknowledged) {
    bool gone = false;
    size_t in_flight = 0;
    while (!gone) {
      const std::string key = "client" + std::to_string(number_) + " key" + std::to_string(random_.Uniform(kKeys));
      if (in_flight < kDepth && !asked_.contains(key)) {
        const Value value = random_.Chance(0.15) ? Value() : NewValue();
        asked_[key] = value;
        ++in_flight;
        const auto done = [&, key](const Status& status) {
          --in_flight;
          gone |= status.code() == Code::kUnavailable;
          if (status.code() == Code::kUnavailable) return;  // Done or not: asked_ keeps it.
          EXPECT_TRUE(status.ok() || status.code() == Code::kNotFound) << status.ToString();
          known_[key] = asked_[key];
          asked_.erase(key);
          ++*acknowledged;
        };
        const Status started = value ? client_->PutAsync(key, *value, done) : client_->DeleteAsync(key, done);
        ASSERT_TRUE(started.ok() || started.code() == Code::kUnavailable) << started.ToString();
        if (!started.ok()) break;
      }
      client_->Poll();
    }
    (void)client_->Drain();
    client_.reset();
  }

  // After a restart, each key must have the value that was acknowledged last, or one that was asked for since.
  void Check(Client& client) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = "client" + std::to_string(number_) + " key" + std::to_string(i);
      const auto found = client.Get(key);
      ASSERT_TRUE(found.ok() || found.status().code() == Code::kNotFound) << found.status().ToString();
      const Value value = found.ok() ? Value(*found) : Value();
      const bool asked = asked_.contains(key) && asked_[key] == value;
      EXPECT_TRUE(value == known_[key] || asked) << key << " is " << Show(value) << ", not " << Show(known_[key]);
      known_[key] = value;
    }
    asked_.clear();
  }

 private:
  static constexpr uint32_t kDepth = 16;
  static constexpr uint64_t kKeys = 60;

  // Small values go inline and large ones into a chunk. Every other client reserves space for all.
  std::string NewValue() {
    std::string value = std::to_string(++values_) + " ";
    value.resize(random_.Chance(0.5) ? random_.Between(20, 200) : random_.Between(5'000, 40'000),
                 static_cast<char>(random_.Between('a', 'z')));
    return value;
  }
  static std::string Show(const Value& value) { return value ? value->substr(0, 10) : "absent"; }

  const std::string address_;
  const int number_;
  const Ack ack_;
  Random random_;
  std::unique_ptr<Client> client_;
  std::map<std::string, Value> known_;
  std::map<std::string, Value> asked_;  // Asked for, and not answered.
  int values_ = 0;
};

class CrashTest : public ProgramsTest, public testing::WithParamInterface<bool> {
 protected:
  CrashTest() {
    if (GetParam()) setenv("PMEM_IS_PMEM_FORCE", "1", 1);  // For the servers: their file is NVM.
  }
  ~CrashTest() override { unsetenv("PMEM_IS_PMEM_FORCE"); }
  [[nodiscard]] std::unique_ptr<Process> Start() const {
    return StartServerWith(
        {"--pool", Pool(), "--size", "256M", "--region-size", "4M", "--shards", "2", "--listen", Address()});
  }
};
INSTANTIATE_TEST_SUITE_P(Pools, CrashTest, testing::Bool(),
                         [](const auto& nvm) { return nvm.param ? "PowerSafe" : "ProcessSafe"; });

TEST_P(CrashTest, AcknowledgedWritesSurviveKills) {
  Random random(7);
  std::vector<Writer> writers;
  for (int i = 0; i < 3; ++i) writers.emplace_back(Address(), i, i == 0 ? Ack::kPlaced : Ack::kPersisted);
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto server = Start();
    EXPECT_EQ(server->out().starts_with("erda-server: recovered in "), round > 0) << server->out();
    auto client = Client::Connect(Address());
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    for (Writer& writer : writers) writer.Check(**client);

    for (Writer& writer : writers) writer.Connect();  // Before any client can end the server.
    if (HasFailure()) return;
    std::atomic<int> acknowledged{0};
    std::vector<std::thread> threads;
    threads.reserve(writers.size());
    for (Writer& writer : writers) threads.emplace_back([&] { writer.Run(&acknowledged); });
    const auto enough = static_cast<int>(random.Between(100, 800));
    EXPECT_TRUE(WaitUntil([&] { return acknowledged >= enough || HasFailure(); }));
    server->Signal(SIGKILL);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  }
  const auto server = Start();
  auto client = Client::Connect(Address());
  ASSERT_TRUE(client.ok()) << client.status().ToString();
  for (Writer& writer : writers) writer.Check(**client);
  StopServer(*server);
  // After a clean close it needs no recovery.
  const auto again = Start();
  EXPECT_TRUE(again->out().starts_with("erda-server: ready")) << again->out();
  StopServer(*again);
}

}  // namespace
}  // namespace erda
