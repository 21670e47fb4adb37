#include "crash/worker.h"

#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/random.h"
#include "crash/records.h"
#include "erda/client.h"

namespace erda::crash {

namespace {

volatile std::sig_atomic_t stop = 0;

bool Gone(Code code) { return code == Code::kUnavailable || code == Code::kTimeout; }

class Worker {
 public:
  Worker(const WorkerSettings& settings, const ClientOptions& options)
      : settings_(settings),
        options_(options),
        random_(Random::Mix(settings.seed) + 1),
        recorder_(settings.records, settings.number, options) {}

  // Waits until it has connected to the server, or until the worker must stop. Returns false if connecting failed.
  bool Connect() {
    while (stop == 0) {
      auto client = Client::Connect(settings_.address, options_);
      if (client.ok()) {
        if (settings_.life.empty() || ServerId(**client) == settings_.life) client_ = *std::move(client);
        return true;
      }
      if (!Gone(client.status().code())) return Fail(client.status());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  void Work(uint32_t depth) {
    while (stop == 0 && client_ && number_ < settings_.operations) {
      std::set<uint32_t> keys;  // each key once: the operations of one client on one key are in order
      const uint64_t together = random_.Between(1, depth);
      while (keys.size() < together) keys.insert(AnyKey());
      gone_ = false;
      for (const uint32_t key : keys) Start(key);
      (void)client_->Drain();
      if (gone_ && !settings_.life.empty()) return;
      if (gone_) WaitForServer();
    }
  }

  void ReadAll() {
    for (uint32_t key = 0; key < KeysOf(settings_.clients) && client_ && stop == 0; ++key) {
      do {
        gone_ = false;
        StartGet(key);
        (void)client_->Drain();
      } while (gone_ && stop == 0);
    }
  }

 private:
  static bool Fail(const Status& status) {
    fmt::print(stderr, "erda-crash: {}\n", status.ToString());
    return false;
  }

  [[nodiscard]] uint32_t AnyKey() {
    if (random_.Chance(0.5)) return static_cast<uint32_t>(random_.Uniform(kSharedKeys));
    return kSharedKeys + settings_.place * kOwnKeys + static_cast<uint32_t>(random_.Uniform(kOwnKeys));
  }

  [[nodiscard]] size_t AnySize(uint32_t key) {
    const size_t most = client_->max_value_bytes(KeyName(key).size());
    const bool small = options_.put_path == PutPath::kInline || random_.Chance(0.6);
    return std::min<size_t>(most, small ? random_.Between(kLeastValueBytes, 1500) : random_.Between(1500, 30'000));
  }

  void Start(uint32_t key) {
    const uint64_t kind = random_.Uniform(100);
    if (kind < 35) return StartGet(key);
    const uint64_t number = ++number_;
    const auto done = [this, number](const Status& status) { End(number, status.code()); };
    const Action action = kind < 88 ? Action::kPut : Action::kDelete;
    const std::string value =
        action == Action::kPut ? MakeValue(ValueId(settings_.number, number), key, AnySize(key)) : "";
    recorder_.Begin(number, action, key);
    const Status started = action == Action::kPut ? client_->PutAsync(KeyName(key), value, done)
                                                  : client_->DeleteAsync(KeyName(key), done);
    if (!started.ok()) End(number, started.code());
  }

  void StartGet(uint32_t key) {
    const uint64_t number = ++number_;
    recorder_.Begin(number, Action::kGet, key);
    const Status started = client_->GetAsync(KeyName(key), [this, number, key](const Result<std::string_view>& found) {
      if (!found.ok() || Reborn()) return End(number, found.status().code());
      const uint64_t value = ValueIn(*found, key);
      if (value == kDamaged) {
        std::ofstream(fmt::format("{}.damaged-{}", settings_.records, number), std::ios::binary)
            << *found << std::flush;
      }
      recorder_.EndGet(number, value);
    });
    if (!started.ok()) End(number, started.code());
  }

  // An operation of another life of the server does not belong to this round. Its outcome counts as unknown.
  void End(uint64_t number, Code code) {
    if (Reborn()) code = Code::kUnavailable;
    gone_ |= Gone(code);
    recorder_.End(number, code);
  }

  [[nodiscard]] bool Reborn() const { return !settings_.life.empty() && client_->stats().reconnects > 0; }

  // Waits until the server answers. Otherwise each operation of that time would have an unknown outcome.
  void WaitForServer() {
    while (stop == 0 && Gone(client_->Get("nobody puts this").status().code())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  const WorkerSettings settings_;
  const ClientOptions options_;
  Random random_;
  Recorder recorder_;
  std::unique_ptr<Client> client_;
  uint64_t number_ = 0;
  bool gone_ = false;
};

void StopOnSignal() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop = 1; };
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

std::string ServerId(Client& client) {
  const auto info = client.ServerInfo();
  if (!info.ok()) return "";
  return std::map<std::string, std::string>(info->begin(), info->end())["server_id"];
}

int Work(const WorkerSettings& settings) {
  StopOnSignal();
  Random random(settings.seed);
  ClientOptions options;
  options.ack = random.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted;
  options.put_path = static_cast<PutPath>(random.Uniform(4));
  const auto depth = static_cast<uint32_t>(random.Between(1, 8));
  options.queue_depth = depth;
  // A slow machine must cause no timeout. But a client may notice only by a timeout that its server lost its power.
  options.timeout = std::chrono::seconds(settings.life.empty() ? 60 : 8);
  Worker worker(settings, options);
  if (!worker.Connect()) return 1;
  worker.Work(depth);
  return 0;
}

int ReadAll(const WorkerSettings& settings) {
  StopOnSignal();
  ClientOptions options;
  options.timeout = std::chrono::seconds(60);
  Worker worker(settings, options);
  if (!worker.Connect()) return 1;
  worker.ReadAll();
  return 0;
}

}  // namespace erda::crash
