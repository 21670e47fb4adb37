#include "bench/pmr/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/pmr/responder.h"
#include "bench/pmr/sender.h"
#include "bench/pmr/targets.h"
#include "bench/pmr/worker.h"
#include "format/durability.h"

namespace erda::pmr_bench {

namespace {

using Time = std::chrono::steady_clock;

// The parts of a measurement, in the order in which they are made. They end in the other order.
class Measurement {
 public:
  explicit Measurement(const Settings& settings) : settings_(settings) {}

  Status Prepare() {
    auto disk = DurableFile::Create(settings_.folder, settings_.clients * kFileBytes);
    if (!disk.ok()) return disk.status();
    targets_.disk = *std::move(disk);
    for (const auto& [path, memory] : {std::pair(settings_.nvm, &targets_.nvm), {settings_.region, &targets_.region}}) {
      auto opened = OpenMemory(path, settings_.clients * kBytesMax);
      if (!opened.ok()) return opened.status();
      *memory = *std::move(opened);
    }
    auto address = floors::OwnAddress(settings_.address, socket_folder_);
    if (!address.ok()) return address.status();
    auto responder =
        Responder::Start(*address, std::array<const nvm::Pool*, 2>{targets_.nvm.get(), targets_.region.get()},
                         [this](uint64_t client, std::span<const std::byte> payload) {
                           return std::make_unique<Worker>(targets_, client, payload);
                         });
    if (!responder.ok()) return responder.status();
    responder_ = *std::move(responder);
    floors::StayOnOneProcessor(floors::Side::kMeasuring);  // After the responder's thread has begun.
    return Connect();
  }

  Status Run() {
    FillReport();
    for (uint64_t round = 0; round < settings_.rounds; ++round) {
      for (Row& row : report_.rows) {
        // Another path begins each time.
        for (size_t turn = 0; turn < kPaths; ++turn) {
          const size_t path = (round + turn) % kPaths;
          if (!report_.not_measured[path].empty()) continue;
          if (auto status = Latency(Path{static_cast<uint8_t>(path)}, row); !status.ok()) return status;
          if (auto status = Throughput(Path{static_cast<uint8_t>(path)}, row); !status.ok()) return status;
        }
      }
    }
    return {};
  }

  [[nodiscard]] Report TakeReport() { return std::move(report_); }

 private:
  Status Connect() {
    Flush flush = settings_.flush;
    if (flush == Flush::kAuto) flush = responder_->capabilities().nic_writes ? Flush::kRead : Flush::kServer;
    report_.flush = flush == Flush::kRead ? "read" : "server";
    for (uint64_t number = 0; number < settings_.clients; ++number) {
      auto sender = Sender::Connect(*responder_, number, flush);
      if (!sender.ok()) return sender.status();
      senders_.push_back(*std::move(sender));
      std::ranges::fill(senders_.back()->payload(), std::byte{'v'});
    }
    return {};
  }

  void FillReport() {
    report_.machine = floors::ThisMachine();
    report_.address = responder_->address();
    report_.device = responder_->capabilities().device;
    report_.nvm_durability = NameOf(targets_.nvm->durability());
    report_.region_durability = NameOf(targets_.region->durability());
    report_.disk_direct = targets_.disk->direct();
    report_.disk_in_memory = targets_.disk->in_memory();
    for (const Path path : {Path::kPmemDirect, Path::kPmrDirect}) {
      const auto& region = responder_->RegionOf(MemoryOf(path));
      if (!region.ok()) report_.not_measured[static_cast<size_t>(path)] = region.status().ToString();
    }
    std::vector<uint64_t> sizes = settings_.sizes;
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const uint64_t bytes : sizes) report_.rows.push_back({bytes, {}, {}});
  }

  // A tenth of the operations comes before, and is not measured.
  Status Latency(Path path, Row& row) {
    Sender& sender = *senders_.front();
    for (uint64_t i = 0; i < settings_.ops / 10 + 1; ++i) {
      if (auto status = sender.Persist(path, row.bytes); !status.ok()) return status;
    }
    auto begin = Time::now();
    for (uint64_t i = 0; i < settings_.ops; ++i) {
      if (auto status = sender.Persist(path, row.bytes); !status.ok()) return status;
      const auto end = Time::now();
      row.us[static_cast<size_t>(path)].Add(std::chrono::duration<double, std::micro>(end - begin).count());
      begin = end;
    }
    return {};
  }

  Status Throughput(Path path, Row& row) {
    struct Part {
      Status status;
      uint64_t done = 0;
    };
    std::vector<Part> parts(senders_.size());
    const auto begin = Time::now();
    const auto end = begin + std::chrono::milliseconds(settings_.milliseconds);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < senders_.size(); ++i) {
        threads.emplace_back([&, i] {
          do {  // A thread that begins late does one.
            parts[i].status = senders_[i]->Persist(path, row.bytes);
            ++parts[i].done;
          } while (parts[i].status.ok() && Time::now() < end);
        });
      }
    }
    const double seconds = std::chrono::duration<double>(Time::now() - begin).count();
    uint64_t done = 0;
    for (const Part& part : parts) {
      if (!part.status.ok()) return part.status;
      done += part.done;
    }
    row.ops_per_second[static_cast<size_t>(path)].Add(static_cast<double>(done) / seconds);
    return {};
  }

  static std::string NameOf(nvm::Durability durability) { return std::string(format::DurabilityName(durability)); }

  const Settings& settings_;
  const floors::TemporaryFolder socket_folder_;
  Targets targets_;
  std::unique_ptr<Responder> responder_;
  std::vector<std::unique_ptr<Sender>> senders_;
  Report report_;
};

}  // namespace

Result<Report> Measure(const Settings& settings) {
  Measurement measurement(settings);
  if (auto status = measurement.Prepare(); !status.ok()) return status;
  if (auto status = measurement.Run(); !status.ok()) return status;
  return measurement.TakeReport();
}

}  // namespace erda::pmr_bench
