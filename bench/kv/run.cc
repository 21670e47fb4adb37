#include "bench/kv/run.h"

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/random.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/kv/log.h"
#include "bench/kv/store.h"
#include "bench/pmr/responder.h"
#include "bench/pmr/sender.h"
#include "bench/pmr/targets.h"
#include "bench/ycsb/zipfian.h"

namespace erda::kv {

namespace {

using Time = std::chrono::steady_clock;

// The paper's sizes, and its skew.
constexpr size_t kKeyBytes = 16;
constexpr size_t kValueBytes = 48;
constexpr double kTheta = 0.9;
enum class Message : uint8_t { kPut, kGet };

struct Workload {
  std::string_view name;
  double puts;    // The share of all operations.
  bool new_keys;  // Puts have new keys in a random order, and the store begins empty.
};
constexpr std::array<Workload, 3> kWorkloads = {{{"Load", 1, true}, {"YCSB-A", 0.5, false}, {"YCSB-B", 0.05, false}}};

using Record = std::array<char, kKeyBytes + kValueBytes>;

// A key with this number, and a value.
Record RecordOf(uint64_t number) {
  Record record;
  record.fill('v');
  const std::string key = fmt::format("{:0{}x}", number * 0x9E3779B97F4A7C15, kKeyBytes);  // A permutation.
  std::memcpy(record.data(), key.data(), kKeyBytes);
  return record;
}

// The server's work for one client. A put is in the log before it is in the store.
class KvHandler final : public pmr_bench::Handler {
 public:
  KvHandler(Store& store, Log& log, uint64_t client, std::span<const std::byte> payload)
      : store_(store), log_(log), client_(client), payload_(payload) {}

  bool Do(uint8_t kind, uint64_t bytes) override {
    if (bytes < kKeyBytes) return false;
    const std::string_view key = AsString(payload_.first(kKeyBytes));
    switch (Message{kind}) {
      case Message::kPut:
        return log_.Append(client_, payload_.first(bytes)) &&
               store_.Put(key, AsString(payload_.subspan(kKeyBytes, bytes - kKeyBytes)));
      case Message::kGet:
        return store_.Get(key, value_) && value_.size() == kValueBytes;
    }
    return false;
  }

 private:
  Store& store_;
  Log& log_;
  const uint64_t client_;
  const std::span<const std::byte> payload_;
  std::string value_;
};

class Client {
 public:
  explicit Client(std::unique_ptr<pmr_bench::Sender> sender) : sender_(std::move(sender)) {}

  Status Put(uint64_t number, bench::Histogram& times) { return Ask(Message::kPut, number, sizeof(Record), times); }
  Status Get(uint64_t number, bench::Histogram& times) { return Ask(Message::kGet, number, kKeyBytes, times); }

 private:
  Status Ask(Message message, uint64_t number, uint64_t bytes, bench::Histogram& times) {
    const Record record = RecordOf(number);
    std::memcpy(sender_->payload().data(), record.data(), bytes);
    const auto begin = Time::now();
    auto status = sender_->Ask(pmr_bench::ImmediateOf(static_cast<uint8_t>(message), bytes), bytes);
    times.Record(static_cast<uint64_t>(std::chrono::nanoseconds(Time::now() - begin).count()));
    return status;
  }
  const std::unique_ptr<pmr_bench::Sender> sender_;
};

using MakeLog = std::function<std::unique_ptr<Log>()>;
struct Access {
  std::string_view name;
  MakeLog make;
};

class Comparison {
 public:
  explicit Comparison(const Settings& settings) : settings_(settings) {}

  Status Prepare() {
    auto disk = pmr_bench::DurableFile::Create(settings_.folder, settings_.clients * pmr_bench::kFileBytes);
    if (!disk.ok()) return disk.status();
    disk_ = *std::move(disk);
    for (const auto& [path, memory] : {std::pair(settings_.nvm, &nvm_), {settings_.region, &region_}}) {
      auto opened = pmr_bench::OpenMemory(path, settings_.front_bytes);
      if (!opened.ok()) return opened.status();
      *memory = *std::move(opened);
    }
    return {};
  }

  Result<std::vector<Row>> Run() {
    const std::array<Access, 4> accesses = {{
        {"SyncAccess", [this] { return std::make_unique<SyncLog>(*disk_, settings_.clients); }},
        {"GroupAccess", [this] { return std::make_unique<GroupLog>(*disk_); }},
        {"PMEMAccess", [this] { return std::make_unique<FrontLog>(*nvm_, *disk_, settings_.clients); }},
        {"PMRAccess", [this] { return std::make_unique<FrontLog>(*region_, *disk_, settings_.clients); }},
    }};
    std::vector<Row> rows;
    for (const Workload& workload : kWorkloads) {
      for (const Access& access : accesses) {
        auto row = Measure(workload, access);
        if (!row.ok()) return row.status();
        rows.push_back(*std::move(row));
      }
    }
    return rows;
  }

 private:
  // Each figure has an empty store, which YCSB first fills.
  Result<Row> Measure(const Workload& workload, const Access& access) {
    const floors::TemporaryFolder folder{std::filesystem::path(settings_.folder)};
    if (folder.path().empty()) return ErrnoStatus("cannot make a folder in " + settings_.folder);
    auto store = MakeStore(folder.path());
    if (!store.ok()) return store.status();
    if (!workload.new_keys) {
      for (uint64_t i = 0; i < settings_.records; ++i) {
        const Record record = RecordOf(i);
        const std::string_view bytes(record.data(), record.size());
        if (!(*store)->Put(bytes.substr(0, kKeyBytes), bytes.substr(kKeyBytes))) {
          return Status(Code::kInternal, "the store took no record");
        }
      }
    }
    const auto log = access.make();
    const floors::TemporaryFolder socket;
    auto address = floors::OwnAddress(settings_.address, socket);
    if (!address.ok()) return address.status();
    auto responder =
        pmr_bench::Responder::Start(*address, {}, [&](uint64_t client, std::span<const std::byte> payload) {
          return std::make_unique<KvHandler>(**store, *log, client, payload);
        });
    if (!responder.ok()) return responder.status();
    Row row;
    row.access = access.name;
    row.workload = workload.name;
    if (auto status = RunClients(workload, **responder, row); !status.ok()) return status;
    return row;
  }

  struct Part {
    bench::Histogram put;
    bench::Histogram get;
    Status status;
  };

  Status RunClients(const Workload& workload, const pmr_bench::Responder& responder, Row& row) {
    std::vector<std::unique_ptr<Client>> clients;
    for (uint64_t number = 0; number < settings_.clients; ++number) {
      auto sender = pmr_bench::Sender::Connect(responder, number, pmr_bench::Flush::kServer);
      if (!sender.ok()) return sender.status();
      clients.push_back(std::make_unique<Client>(*std::move(sender)));
    }
    std::vector<Part> parts(clients.size());
    const auto begin = Time::now();
    const auto end = begin + std::chrono::milliseconds(settings_.milliseconds);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < clients.size(); ++i) {
        threads.emplace_back([&, i] {
          floors::StayOnOneProcessor(floors::Side::kMeasuring);  // The server's threads are on another one.
          RunClient(workload, *clients[i], i, end, parts[i]);
        });
      }
    }
    const double seconds = std::chrono::duration<double>(Time::now() - begin).count();
    for (const Part& part : parts) {
      if (!part.status.ok()) return part.status;
      row.put.Merge(part.put);
      row.get.Merge(part.get);
    }
    row.ops_per_second = static_cast<double>(row.put.count() + row.get.count()) / seconds;
    return {};
  }

  void RunClient(const Workload& workload, Client& client, uint64_t number, Time::time_point end, Part& part) const {
    Random random(number + 1);
    bench::Zipfian zipfian(settings_.records, kTheta);
    const bench::Scatter scatter(settings_.records);
    uint64_t next = number;
    do {  // A thread that begins late does one operation.
      const uint64_t key = workload.new_keys ? next : scatter(zipfian.Next(random));
      part.status = random.Chance(workload.puts) ? client.Put(key, part.put) : client.Get(key, part.get);
      next += settings_.clients;
    } while (part.status.ok() && Time::now() < end);
  }

  const Settings& settings_;
  std::unique_ptr<pmr_bench::DurableFile> disk_;
  std::unique_ptr<nvm::Pool> nvm_;
  std::unique_ptr<nvm::Pool> region_;
};

std::string Micros(const bench::Histogram& times) {
  if (times.count() == 0) return fmt::format(" {:>9} {:>9} {:>9}", "-", "-", "-");
  std::string text;
  for (const double percent : {50.0, 90.0, 99.0}) {
    text += fmt::format(" {:>9.2f}", static_cast<double>(times.Percentile(percent)) / 1000);
  }
  return text;
}

}  // namespace

Result<std::vector<Row>> Run(const Settings& settings) {
  Comparison comparison(settings);
  if (auto status = comparison.Prepare(); !status.ok()) return status;
  return comparison.Run();
}

std::string ToTable(const Settings& settings, const std::vector<Row>& rows) {
  std::string text = fmt::format(
      "{}, {} clients over {}; disk {}, NVM {}, region {}, {} bytes of each\n\n{:<9} {:<12} {:>12} {:>9} {:>9} {:>9} "
      "{:>9} {:>9} {:>9}\n",
      kStoreName, settings.clients, settings.fabric, settings.folder, settings.nvm, settings.region,
      settings.front_bytes, "", "", "operations/s", "put p50", "p90", "p99 us", "get p50", "p90", "p99 us");
  for (const Row& row : rows) {
    text += fmt::format("{:<9} {:<12} {:>12.0f}{}{}\n", row.workload, row.access, row.ops_per_second, Micros(row.put),
                        Micros(row.get));
  }
  return text;
}

}  // namespace erda::kv
