#include "bench/paths/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"

namespace erda::paths {

namespace {

using Time = std::chrono::steady_clock;

// Keys of each path, so that no key is put by two clients.
constexpr uint64_t kKeys = 64;
constexpr uint64_t kIndexSlots = 1024;
// Puts before each turn, not measured. They are more than a client waits before it asks for a chunk again, in one head
// or two.
constexpr uint64_t kWarmPuts = 150;
// The size of the values that first fill the log, on each path.
constexpr size_t kFillBytes = 32768;

class Measurement {
 public:
  explicit Measurement(const Settings& settings) : settings_(settings) {}

  Status Prepare(const floors::ServerProcess::Ready& server) {
    report_.machine = floors::ThisMachine();
    report_.address = server.address;
    report_.durability = server.durability;
    for (size_t path = 0; path < kPaths.size(); ++path) {
      ClientOptions options;
      options.put_path = kPaths[path];
      auto client = Client::Connect(server.address, options);
      if (!client.ok()) return client.status();
      clients_[path] = *std::move(client);
    }
    const auto info = clients_[0]->ServerInfo();
    if (!info.ok()) return info.status();
    for (const auto& [name, value] : *info) {
      if (name == "flush_method") report_.flush_method = value;
    }
    const auto log_bytes = Count("log_bytes_total");
    if (!log_bytes.ok()) return log_bytes.status();
    std::vector<uint64_t> sizes = settings_.value_sizes;
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const uint64_t size : sizes) report_.rows.push_back({size, {}, 0});
    value_.assign(std::max<uint64_t>(sizes.back(), kFillBytes), 'v');
    return WriteThrough(*log_bytes);
  }

  Status Run() {
    for (uint64_t round = 0; round < settings_.rounds; ++round) {
      for (Row& row : report_.rows) {
        for (size_t path = 0; path < kPaths.size(); ++path) {
          if (auto status = Turn(path, row); !status.ok()) return status;
        }
      }
    }
    for (Row& row : report_.rows) row.delegated_share /= static_cast<double>(settings_.rounds * settings_.ops);
    return {};
  }

  [[nodiscard]] Report TakeReport() { return std::move(report_); }

 private:
  // Returns the server's counter of this name.
  Result<uint64_t> Count(std::string_view name) {
    const auto info = clients_[0]->ServerInfo();
    if (!info.ok()) return info.status();
    for (const auto& [counter, value] : *info) {
      if (counter == name) return std::stoull(value);
    }
    return Status(Code::kInternal, "the server does not count " + std::string(name));
  }

  Status Put(size_t path, uint64_t i, size_t bytes) {
    const std::string key = fmt::format("erda-bench.{}.{:010}", kPathNames[path].front(), i % kKeys);
    return clients_[path]->Put(key, std::string_view(value_).substr(0, bytes));
  }

  // Lets the server touch each page of the log, and each client that writes into it map the page, as after some time at
  // work. Otherwise the benchmark would measure the kernel's first touch of pages.
  Status WriteThrough(uint64_t log_bytes) {
    for (size_t path = 0; path < kPaths.size(); ++path) {
      for (uint64_t i = 0; i <= log_bytes / kFillBytes; ++i) {
        if (auto status = Put(path, i, kFillBytes); !status.ok()) return status;
      }
    }
    return {};
  }

  // The figure includes one look at the clock for each put.
  Status Turn(size_t path, Row& row) {
    if (kPaths[path] == PutPath::kInline && floors::RequestBytes(row.value_size) > kSlotBytes) return {};
    // Enough puts that a client which was idle, and whose chunk was revoked, has asked for another one.
    const uint64_t warm = std::max<uint64_t>(settings_.ops / 10, kWarmPuts);
    for (uint64_t i = 0; i < warm; ++i) {
      if (auto status = Put(path, i, row.value_size); !status.ok()) return status;
    }
    const auto before = Count("puts_delegated");
    if (!before.ok()) return before.status();
    auto begin = Time::now();
    for (uint64_t i = 0; i < settings_.ops; ++i) {
      if (auto status = Put(path, i, row.value_size); !status.ok()) return status;
      const auto end = Time::now();
      row.samples[path].Add(std::chrono::duration<double, std::micro>(end - begin).count());
      begin = end;
    }
    const auto after = Count("puts_delegated");
    if (!after.ok()) return after.status();
    row.delegated_share += static_cast<double>(*after - *before);
    return {};
  }

  const Settings& settings_;
  Report report_;
  std::array<std::unique_ptr<Client>, kPaths.size()> clients_;
  std::string value_;
};

}  // namespace

Result<Report> Measure(const Settings& settings, const std::string& program) {
  const floors::TemporaryFolder folder;
  floors::ServeSettings serve;
  auto address = floors::OwnAddress(settings.address, folder);
  if (!address.ok()) return address.status();
  serve.address = *std::move(address);
  serve.pool = settings.pool;
  serve.pool_size = settings.pool_size;
  serve.index_entries = kIndexSlots;
  serve.slot_bytes = kSlotBytes;
  auto server = floors::ServerProcess::StartBeside(program, serve);
  if (!server.ok()) return server.status();
  Measurement measurement(settings);
  Status status = measurement.Prepare((*server)->ready());
  if (status.ok()) status = measurement.Run();
  Report report = measurement.TakeReport();
  if (!status.ok()) return status;
  if (auto stopped = (*server)->Stop(); !stopped.ok()) return stopped;
  return report;
}

}  // namespace erda::paths
