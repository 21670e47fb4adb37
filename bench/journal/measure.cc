#include "bench/journal/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "bench/floors/report.h"
#include "bench/journal/journaled_server.h"
#include "bench/journal/put_load.h"
#include "bench/journal/raw_disk.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"

namespace erda::journal_bench {

namespace {

using Time = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr uint64_t kRawBytes = 64 << 20;
constexpr uint64_t kFillBytes = 16 << 10;
constexpr uint64_t kGetKeys = 1000;
// Idle and busy slices follow each other closely, so that both meet the same machine.
constexpr uint64_t kGetSlices = 4;
// After it the disk has also what nobody waited for.
constexpr Milliseconds kRest{200};

template <class Work>
Result<double> MicrosOf(const Work& work) {
  const auto begin = Time::now();
  if (auto status = work(); !status.ok()) return status;
  return std::chrono::duration<double, std::micro>(Time::now() - begin).count();
}

template <class Work>
Status Sample(floors::Samples& samples, const Work& work) {
  const auto took = MicrosOf(work);
  if (!took.ok()) return took.status();
  samples.Add(*took);
  return {};
}

std::string GetKey(uint64_t i) { return fmt::format("erda-bench.get.{:010}", i % kGetKeys); }

class Measurement {
 public:
  Measurement(const Settings& settings, std::string program)
      : settings_(settings), time_(settings.milliseconds), server_(settings, std::move(program)) {
    report_.machine = floors::ThisMachine();
    report_.loads = {
        {1, 1, {}, {}, 0, 0}, {settings.clients, 1, {}, {}, 0, 0}, {settings.clients, settings.depth, {}, {}, 0, 0}};
  }

  Status Run() {
    if (auto status = MakeDisk(); !status.ok()) return status;
    if (!settings_.disk_only) {
      if (auto status = StartFilled(); !status.ok()) return status;
    }
    for (uint64_t round = 0; round < settings_.rounds; ++round) {
      if (auto status = SmallWrites(); !status.ok()) return status;
      if (auto status = SequentialWrites(); !status.ok()) return status;
      if (settings_.disk_only) continue;
      if (auto status = Round(); !status.ok()) return status;
    }
    if (settings_.disk_only) return {};
    client_.reset();
    if (auto status = server_.Stop(); !status.ok()) return status;
    return CountBytes();
  }

  [[nodiscard]] Report TakeReport() { return std::move(report_); }

 private:
  Status MakeDisk() {
    if (server_.folder().empty()) return ErrnoStatus("cannot make a folder in " + settings_.folder);
    auto disk = RawDisk::Create(server_.folder(), kRawBytes);
    if (!disk.ok()) return disk.status();
    disk_ = *std::move(disk);
    report_.disk.direct = disk_->direct();
    report_.disk.in_memory = disk_->in_memory();
    return {};
  }

  // Writes through the log, as a server does that has run for some time. From then on regions are emptied, too.
  Status StartFilled() {
    if (auto status = server_.Start(); !status.ok()) return status;
    report_.durability = server_.durability();
    if (auto status = Connect(); !status.ok()) return status;
    return PutMany(settings_.pool_size / kFillBytes, kFillBytes);
  }

  // Puts the keys that are only read, over and over, in this number of puts.
  Status PutMany(uint64_t puts, size_t bytes) {
    const std::string value(bytes, 'v');
    Status failed;
    const auto done = [&failed](const Status& status) {
      if (!status.ok()) failed = status;
    };
    for (uint64_t i = 0; i < puts && failed.ok(); ++i) {
      if (auto put = client_->PutAsync(GetKey(i), value, done); !put.ok()) return put;
    }
    if (auto drained = client_->Drain(); !drained.ok()) return drained;
    return failed;
  }

  Status Connect() {
    ClientOptions options;
    options.wait_for_room = true;
    auto client = Client::Connect(server_.address(), options);
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
    return {};
  }

  Status Round() {
    for (Load& load : report_.loads) {
      if (auto status = RunLoad(load); !status.ok()) return status;
    }
    if (auto status = Gets(); !status.ok()) return status;
    return Restarts();
  }

  // In turn: a disk that gets slower, or has other work, is so for all three. Another one begins each time.
  Status SmallWrites() {
    const bench::Values values(settings_.value_bytes);
    std::string value(settings_.value_bytes, '\0');
    const uint64_t kinds = settings_.disk_only ? 2 : 3;
    const auto end = Time::now() + time_;
    for (uint64_t i = 0; Time::now() < end; ++i) {
      for (uint64_t turn = 0; turn < kinds; ++turn) {
        const uint64_t kind = (i + turn) % kinds;
        const bench::Key key = bench::KeyOf(i % settings_.keys);
        if (kind == 2) values.Fill(value, i % settings_.keys, i);
        Status status = kind == 0   ? Sample(report_.disk.flushed, [this] { return disk_->WriteAndFlush(); })
                        : kind == 1 ? Sample(report_.disk.durable, [this] { return disk_->WriteDurably(); })
                                    : Sample(report_.put_us, [&] { return client_->Put(bench::AsView(key), value); });
        if (!status.ok()) return status;
      }
    }
    return {};
  }

  Status SequentialWrites() {
    const auto end = Time::now() + time_;
    do {
      const auto write = [this] { return disk_->WriteLargeAndFlush(); };
      if (auto status = Sample(report_.disk.sequential, write); !status.ok()) return status;
    } while (Time::now() < end);
    return {};
  }

  [[nodiscard]] PutLoad LoadOf(uint64_t clients, uint64_t depth) const {
    return {server_.address(), settings_.keys, settings_.value_bytes, clients, depth};
  }

  Status RunLoad(Load& load) {
    const auto result = RunPuts(LoadOf(load.clients, load.depth), time_);
    if (!result.ok()) return result.status();
    load.put.Merge(result->put);
    load.puts_per_second.Add(static_cast<double>(result->put.count()) / result->seconds);
    return {};
  }

  // Gets until `stop` says so.
  template <class Stop>
  Status GetUntil(const Stop& stop, bench::Histogram& times) {
    std::string value(std::max(settings_.value_bytes, kFillBytes), '\0');
    for (uint64_t i = 0; !stop(); ++i) {
      const std::string key = GetKey(i);
      const auto begin = Time::now();
      const auto got = client_->Get(key, std::as_writable_bytes(std::span(value)));
      const auto took = Time::now() - begin;
      if (!got.ok()) return got.status();
      times.Record(static_cast<uint64_t>(std::chrono::nanoseconds(took).count()));
    }
    return {};
  }

  Status Gets() {
    if (auto status = PutMany(kGetKeys, settings_.value_bytes); !status.ok()) return status;
    const Milliseconds slice = std::max<Milliseconds>(time_ / kGetSlices, Milliseconds(1));
    for (uint64_t i = 0; i < kGetSlices; ++i) {
      std::this_thread::sleep_for(kRest);
      const auto end = Time::now() + slice;
      if (auto status = GetUntil([&] { return Time::now() >= end; }, report_.get_idle); !status.ok()) return status;
      std::atomic<bool> ended = false;
      Status put;
      std::jthread putter([&] {
        put = RunPuts(LoadOf(1, settings_.depth), slice).status();
        ended.store(true, std::memory_order_relaxed);
      });
      auto status = GetUntil([&] { return ended.load(std::memory_order_relaxed); }, report_.get_busy);
      putter.join();
      if (!status.ok()) return status;
      if (!put.ok()) return put;
    }
    return {};
  }

  Status Restarts() {
    for (floors::Samples* samples : {&report_.restart_with_image, &report_.restart_without_image}) {
      const auto puts = RunPuts(LoadOf(settings_.clients, settings_.depth), time_);
      if (!puts.ok()) return puts.status();
      client_.reset();
      server_.Kill();
      if (samples == &report_.restart_without_image) {
        if (auto status = server_.LoseMemory(); !status.ok()) return status;
      }
      const auto micros = MicrosOf([this] { return server_.Start(); });
      if (!micros.ok()) return micros.status();
      samples->Add(*micros / 1000);
      if (auto status = Connect(); !status.ok()) return status;
    }
    return {};
  }

  // Each load in a life of the server. REQUIRES: the server is stopped.
  Status CountBytes() {
    const auto idle = BytesOfLife(nullptr);
    if (!idle.ok()) return idle.status();
    for (Load& load : report_.loads) {
      const auto written = BytesOfLife(&load);
      if (!written.ok()) return written.status();
      load.bytes_written = *written - std::min(*written, *idle);
    }
    return {};
  }

  Result<uint64_t> BytesOfLife(Load* load) {
    const uint64_t before = BytesWrittenByServers();
    if (auto status = server_.Start(); !status.ok()) return status;
    if (load != nullptr) {
      const auto puts = RunPuts(LoadOf(load->clients, load->depth), time_ * settings_.rounds);
      if (!puts.ok()) return puts.status();
      load->bytes_put = puts->put.count() * settings_.value_bytes;
    }
    if (auto status = server_.Stop(); !status.ok()) return status;
    return BytesWrittenByServers() - before;
  }

  const Settings& settings_;
  const Milliseconds time_;
  JournaledServer server_;
  std::unique_ptr<RawDisk> disk_;
  std::unique_ptr<Client> client_;
  Report report_;
};

}  // namespace

Result<Report> Measure(const Settings& settings, const std::string& program) {
  Measurement measurement(settings, program);
  if (auto status = measurement.Run(); !status.ok()) return status;
  return measurement.TakeReport();
}

}  // namespace erda::journal_bench
