#include "bench/soak/soak.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/floors/child.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/ycsb/worker.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"
#include "tools/shared/progress.h"

namespace erda::soak {

namespace {

using bench::AsView;
using bench::Failures;
using bench::Values;
using floors::ServerProcess;

constexpr uint32_t kDepth = 16;
// A put may wait for the cleaner, but not longer.
constexpr std::chrono::seconds kTimeout{60};
constexpr double kGets = 0.3;  // Part of all operations.
// This part of all operations goes to one key in a hundred.
constexpr double kHot = 0.25;

// The numbers of the writes of a key.
struct KeyState {
  std::atomic<uint32_t> begun{0};
  std::atomic<uint32_t> acknowledged{0};
};

// The state that all clients share.
struct Store {
  Store(const Settings& wished, uint64_t keys) : settings(wished), states(keys) {
    for (const uint32_t size : kValueBytes) values.emplace_back(size);
  }

  // Checks the result of a get. `acknowledged` is the last write that was acknowledged before the get began. `begun` is
  // the last one that had begun when the get ended. Returns the fault, or an empty string.
  [[nodiscard]] std::string Check(uint64_t record, const Result<std::string_view>& found, uint32_t acknowledged,
                                  uint32_t begun) const {
    if (!found.ok() && found.status().code() != Code::kNotFound) return found.status().ToString();
    if (!found.ok()) {
      for (uint32_t number = acknowledged; number <= begun; ++number) {
        if (IsDelete(record, number)) return "";
      }
      return fmt::format("not found, though write {} was acknowledged, and no delete up to {}", acknowledged, begun);
    }
    uint64_t number = 0;
    if (found->size() < Values::kHeaderBytes) return fmt::format("a value of {} bytes", found->size());
    std::memcpy(&number, found->data() + sizeof(uint64_t), sizeof(number));
    if (number > begun) return fmt::format("the value of write {}, of which only {} had begun", number, begun);
    if (number < acknowledged) {
      return fmt::format("the value of write {}, though write {} was acknowledged", number, acknowledged);
    }
    if (IsDelete(record, number)) return fmt::format("a value of write {}, which was a delete", number);
    return values[SizeClassOf(record, number)].Check(*found, record);
  }

  const Settings& settings;
  std::vector<Values> values;  // By size class.
  std::deque<KeyState> states;
  std::atomic<uint64_t> bytes{0};
  Failures failures;
};

// One client and its work. Used by one thread.
class Worker {
 public:
  Worker(Store& store, uint32_t index, std::unique_ptr<Client> client)
      : store_(store), index_(index), client_(std::move(client)), random_(store.settings.seed + index) {}

  // Does the first write of each of its keys.
  void Load() {
    for (uint64_t record = index_; record < store_.states.size() && !store_.failures.any();) {
      if (in_flight_ == kDepth) {
        PollOrYield();
        continue;
      }
      Write(record);
      record += store_.settings.clients;
    }
    Finish();
  }

  // Writes and gets until all clients have written `bytes`.
  void Overwrite(uint64_t bytes) {
    while (!store_.failures.any() && store_.bytes.load(std::memory_order_relaxed) < bytes) {
      if (in_flight_ == kDepth) {
        PollOrYield();
        continue;
      }
      const uint64_t keys = store_.states.size();
      const uint64_t record = random_.Uniform(random_.Chance(kHot) ? keys / 100 + 1 : keys);
      random_.Chance(kGets) ? Get(record) : Write(OwnRecord(record));
    }
    Finish();
  }

  // Checks its keys while no write is under way: each must be as its last write left it.
  void Verify() {
    for (uint64_t record = index_; record < store_.states.size() && !store_.failures.any();) {
      if (in_flight_ == kDepth) {
        PollOrYield();
        continue;
      }
      Get(record);
      record += store_.settings.clients;
    }
    Finish();
  }

  void Restart(std::unique_ptr<Client> client) { client_ = std::move(client); }
  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] uint64_t puts() const { return puts_; }
  [[nodiscard]] uint64_t deletes() const { return deletes_; }
  [[nodiscard]] uint64_t gets() const { return gets_; }

 private:
  // Returns the record nearest to this one that this client writes.
  [[nodiscard]] uint64_t OwnRecord(uint64_t record) const {
    const uint64_t own = record - record % store_.settings.clients + index_;
    return own < store_.states.size() ? own : own - store_.settings.clients;
  }

  void Write(uint64_t record) {
    KeyState& state = store_.states[record];
    const uint32_t number = state.begun.load(std::memory_order_relaxed) + 1;
    state.begun.store(number);
    const auto done = [this, record, number](const Status& status) { FinishWrite(record, number, status); };
    const bench::Key key = bench::KeyOf(record);
    Status started;
    if (IsDelete(record, number)) {
      started = client_->DeleteAsync(AsView(key), done);
    } else {
      const Values& values = store_.values[SizeClassOf(record, number)];
      value_.resize(values.value_bytes());
      values.Fill(value_, record, number);
      started = client_->PutAsync(AsView(key), value_, done);
    }
    Started("write", record, started);
  }

  void FinishWrite(uint64_t record, uint32_t number, const Status& status) {
    --in_flight_;
    const bool deletes = IsDelete(record, number);
    const bool was_absent = deletes && IsDelete(record, number - 1);
    if (status.code() != (was_absent ? Code::kNotFound : Code::kOk)) {
      return Fail(deletes ? "delete" : "put", record,
                  fmt::format("write {}: {}{}", number, status.ToString(),
                              was_absent ? ", though a delete came before it" : ""));
    }
    store_.states[record].acknowledged.store(number);
    ++(deletes ? deletes_ : puts_);
    store_.bytes.fetch_add(was_absent ? 0 : SpaceOf(record, number), std::memory_order_relaxed);
  }

  void Get(uint64_t record) {
    const uint32_t acknowledged = store_.states[record].acknowledged.load();
    const auto done = [this, record, acknowledged](const Result<std::string_view>& found) {
      --in_flight_;
      ++gets_;
      const std::string wrong = store_.Check(record, found, acknowledged, store_.states[record].begun.load());
      if (!wrong.empty()) Fail("get", record, wrong);
    };
    Started("get", record, client_->GetAsync(AsView(bench::KeyOf(record)), done));
  }

  void Started(const char* action, uint64_t record, const Status& status) {
    if (status.ok()) {
      ++in_flight_;
    } else {
      Fail(action, record, status.ToString());
    }
  }

  void Finish() {
    while (in_flight_ > 0 && !store_.failures.any()) PollOrYield();
  }

  void PollOrYield() {
    if (client_->Poll() == 0) std::this_thread::yield();
  }

  void Fail(const char* action, uint64_t record, const std::string& why) {
    store_.failures.Add(
        fmt::format("{} of {} (record {}) failed: {}", action, AsView(bench::KeyOf(record)), record, why));
  }

  Store& store_;
  const uint32_t index_;
  std::unique_ptr<Client> client_;
  Random random_;
  std::string value_;
  uint32_t in_flight_ = 0;
  uint64_t puts_ = 0;
  uint64_t deletes_ = 0;
  uint64_t gets_ = 0;
};

class Soak {
 public:
  Soak(const Settings& settings, std::string program, std::string address, std::string pool, uint64_t keys)
      : settings_(settings), program_(std::move(program)), store_(settings, keys) {
    serve_.address = std::move(address);
    serve_.pool = std::move(pool);
    serve_.pool_size = settings.pool_size;
    serve_.keep = true;
  }

  Status Run() {
    if (auto status = StartServer(); !status.ok()) return status;
    const uint64_t goal = settings_.times * settings_.pool_size;
    if (auto status = All("load", [](Worker& worker) { worker.Load(); }); !status.ok()) return status;
    if (auto status = All("overwrite", [goal](Worker& worker) { worker.Overwrite(goal); }); !status.ok()) return status;
    if (auto status = All("verify", [](Worker& worker) { worker.Verify(); }); !status.ok()) return status;
    if (auto status = LookAtServer(); !status.ok()) return status;
    if (auto status = server_->Stop(); !status.ok()) return status;

    if (auto status = StartServer(); !status.ok()) return status;
    if (auto status = All("verify again", [](Worker& worker) { worker.Verify(); }); !status.ok()) return status;
    if (auto status = server_->Stop(); !status.ok()) return status;
    return Inspect();
  }

  [[nodiscard]] Report TakeReport() {
    report_.keys = store_.states.size();
    report_.bytes = store_.bytes;
    for (const auto& worker : workers_) {
      report_.puts += worker->puts();
      report_.deletes += worker->deletes();
      report_.gets += worker->gets();
    }
    return report_;
  }

 private:
  Status StartServer() {
    auto server = ServerProcess::Start(program_, serve_);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    for (uint32_t i = 0; i < settings_.clients; ++i) {
      ClientOptions options;
      options.queue_depth = kDepth;
      options.timeout = kTimeout;
      if (i % 2 == 1) options.put_path = PutPath::kReserve;
      auto client = Client::Connect(server_->ready().address, options);
      if (!client.ok()) return client.status();
      if (i < workers_.size()) {
        workers_[i]->Restart(*std::move(client));
      } else {
        workers_.push_back(std::make_unique<Worker>(store_, i, *std::move(client)));
      }
    }
    return {};
  }

  // Runs each worker in a separate thread.
  template <class Work>
  Status All(const char* what, Work work) {
    std::atomic<size_t> running = workers_.size();
    std::vector<std::thread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back([&, worker = worker.get()] {
        work(*worker);
        --running;
      });
    }
    {
      tools::Progress progress(what, settings_.times * settings_.pool_size, tools::Progress::HasTerminal());
      while (running > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        progress.Update(store_.bytes);
      }
    }
    for (auto& thread : threads) thread.join();
    if (!store_.failures.any()) return {};
    return {Code::kInternal, fmt::format("{}: {}", what, store_.failures.first())};
  }

  Status LookAtServer() {
    const auto info = workers_[0]->client().ServerInfo();
    if (!info.ok()) return info.status();
    std::map<std::string, std::string> counters(info->begin(), info->end());
    for (const char* name : {"refused", "violations", "damaged_keys", "taken_back"}) {
      if (counters[name] != "0") return {Code::kInternal, fmt::format("the server counts {} {}", counters[name], name)};
    }
    report_.regions_cleaned = std::stoull(counters["clean_regions"]);
    report_.bytes_copied = std::stoull(counters["clean_bytes_copied"]);
    report_.puts_delayed = std::stoull(counters["puts_delayed"]);
    return {};
  }

  Status Inspect() const {
    const std::string inspect = std::filesystem::path(program_).parent_path() / "erda-inspect";
    auto child = floors::Child::Start({inspect, "--verify", serve_.pool});
    if (!child.ok()) return child.status();
    const auto ended = (*child)->Wait();
    if (ended.code == 0) return {};
    return {Code::kCorruption, fmt::format("erda-inspect --verify ended with code {}:\n{}", ended.code, ended.out)};
  }

  const Settings& settings_;
  const std::string program_;
  floors::ServeSettings serve_;
  Store store_;
  std::unique_ptr<ServerProcess> server_;
  std::vector<std::unique_ptr<Worker>> workers_;  // Destroyed before the server that they use.
  Report report_;
};

}  // namespace

Result<Report> Run(const Settings& settings, const std::string& program) {
  const auto begin = std::chrono::steady_clock::now();
  std::error_code ignored;
  if (!settings.pool.empty() && std::filesystem::exists(settings.pool, ignored)) {
    return Status(Code::kInvalidArgument,
                  "--pool: " + settings.pool + " exists already; name a file that does not exist");
  }
  const auto keys = KeysFor(settings);
  if (!keys.ok()) return keys.status();
  const floors::TemporaryFolder folder;
  if (folder.path().empty()) return ErrnoStatus("cannot make a folder for a socket");
  Soak soak(settings, program, "shm:" + folder.path() + "/socket",
            settings.pool.empty() ? folder.path() + "/pool" : settings.pool, *keys);
  if (auto status = soak.Run(); !status.ok()) return status;
  Report report = soak.TakeReport();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

std::string ToText(const Settings& settings, const Report& report) {
  constexpr double kMiB = 1 << 20;
  const auto bytes = static_cast<double>(report.bytes);
  return fmt::format(
      "{} keys in a pool of {:.0f} MiB, {} % of what is usable; {} clients\n"
      "{:.0f} MiB written, {:.1f} times the pool: {} puts, {} deletes; {} gets, all as they had to be\n"
      "cleaned: {} regions, {:.0f} MiB copied; {} puts had to wait, none was refused\n"
      "verified, also after a restart and by erda-inspect; {:.1f} s\n",
      report.keys, static_cast<double>(settings.pool_size) / kMiB, settings.live, settings.clients, bytes / kMiB,
      bytes / static_cast<double>(settings.pool_size), report.puts, report.deletes, report.gets, report.regions_cleaned,
      static_cast<double>(report.bytes_copied) / kMiB, report.puts_delayed, report.seconds);
}

}  // namespace erda::soak
