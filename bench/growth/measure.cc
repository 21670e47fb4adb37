#include "bench/growth/measure.h"

#include <charconv>
#include <chrono>
#include <memory>
#include <utility>

#include "base/random.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"

namespace erda::growth {

namespace {

using Time = std::chrono::steady_clock;

// Operations of each kind between two looks at the slots. A step of growth comes after about two hundred keys.
constexpr uint64_t kBatch = 1000;
constexpr uint64_t kSlotsPerKey = 2;  // Of 16 bytes. An object has about 100 bytes beside its value.
constexpr uint64_t kObjectBytes = 128;

class Measurement {
 public:
  Measurement(const Settings& settings, std::unique_ptr<Client> client)
      : settings_(settings),
        values_(settings.value_bytes),
        client_(std::move(client)),
        value_(settings.value_bytes, '\0') {}

  // Puts the first half of the keys.
  Status Load() {
    while (keys_ < settings_.keys / 2) {
      values_.Fill(value_, keys_, 0);
      Status status = client_->PutAsync(bench::AsView(bench::KeyOf(keys_)), value_, [this](const Status& done) {
        if (failed_.ok() && !done.ok()) failed_ = done;
      });
      if (status.code() == Code::kResourceExhausted) {
        client_->Poll();
        continue;
      }
      if (!status.ok()) return status;
      ++keys_;
    }
    if (auto status = client_->Drain(); !status.ok()) return status;
    return failed_;
  }

  Result<Report> Run() {
    auto slots = Slots();
    if (!slots.ok()) return slots.status();
    report_.slots_before = *slots;
    while (keys_ < settings_.keys) {
      Slices batch;
      if (auto status = RunBatch(batch); !status.ok()) return status;
      const auto now = Slots();
      if (!now.ok()) return now.status();
      Slices& slices = report_.slices.at(static_cast<size_t>(*now == *slots ? State::kIdle : State::kGrowing));
      slots = now;
      slices.get.Merge(batch.get);
      slices.put.Merge(batch.put);
      slices.reads += batch.reads;
    }
    report_.slots_after = *slots;
    return report_;
  }

 private:
  Status RunBatch(Slices& batch) {
    const uint64_t reads = client_->stats().reads;
    for (uint64_t i = 0; i < kBatch && keys_ < settings_.keys; ++i, ++keys_) {
      const bench::Key key = bench::KeyOf(random_.Uniform(keys_));
      const auto begin = Time::now();
      const auto got = client_->Get(bench::AsView(key));
      const auto between = Time::now();
      if (!got.ok()) return got.status();
      values_.Fill(value_, keys_, 0);
      const bench::Key next = bench::KeyOf(keys_);
      const auto put_begin = Time::now();
      Status put = client_->Put(bench::AsView(next), value_);
      const auto end = Time::now();
      if (!put.ok()) return put;
      batch.get.Record(static_cast<uint64_t>((between - begin).count()));
      batch.put.Record(static_cast<uint64_t>((end - put_begin).count()));
    }
    batch.reads = client_->stats().reads - reads;
    return {};
  }

  Result<uint64_t> Slots() {
    const auto info = client_->ServerInfo();
    if (!info.ok()) return info.status();
    uint64_t slots = 0;
    for (const auto& [name, value] : *info) {
      if (name == "index_slots") std::from_chars(value.data(), value.data() + value.size(), slots);
    }
    return slots;
  }

  const Settings& settings_;
  const bench::Values values_;
  std::unique_ptr<Client> client_;
  std::string value_;
  uint64_t keys_ = 0;
  Random random_{1};
  Status failed_;
  Report report_;
};

}  // namespace

Result<Report> Measure(const Settings& settings, const std::string& program) {
  const floors::TemporaryFolder folder;
  if (folder.path().empty()) return Status(Code::kInternal, "cannot make a folder for a socket");
  const auto address = floors::OwnAddress(settings.address, folder);
  if (!address.ok()) return address.status();
  floors::ServeSettings serve;
  serve.address = *address;
  serve.pool = settings.pool;
  serve.pool_size = (uint64_t{64} << 20) + 2 * settings.keys * (settings.value_bytes + kObjectBytes);
  serve.index_entries = settings.keys / kSlotsPerKey;
  auto server = floors::ServerProcess::StartBeside(program, serve);
  if (!server.ok()) return server.status();
  auto client = Client::Connect((*server)->ready().address, {});
  if (!client.ok()) return client.status();
  Measurement measurement(settings, *std::move(client));
  if (auto status = measurement.Load(); !status.ok()) return status;
  auto report = measurement.Run();
  const Status stopped = (*server)->Stop();
  return report.ok() && !stopped.ok() ? Result<Report>(stopped) : std::move(report);
}

}  // namespace erda::growth
