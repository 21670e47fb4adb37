#include "bench/cleaning/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/relax.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/ycsb/thread_time.h"
#include "bench/ycsb/workload.h"
#include "bench/ycsb/zipfian.h"
#include "erda/client.h"

namespace erda::cleaning {

namespace {

using bench::AsView;
using bench::OpKind;
using Time = std::chrono::steady_clock;

constexpr uint32_t kDepth = 64;
// The divisor of the background's rate of puts while the shard's processor time is measured. The shard then sleeps
// between two puts.
constexpr uint64_t kSlowness = 50;
// The cleaner is quiet when this number of looks at the counters find them unchanged, one after the other.
constexpr int kQuietLooks = 5;
constexpr std::chrono::milliseconds kBetweenLooks{4};

struct NamedWorkload {
  std::string_view name;
  std::string_view title;
  std::string_view ycsb;
};
constexpr std::array<NamedWorkload, 4> kWorkloads = {
    {{"ycsb_a", "YCSB-A", "A"}, {"ycsb_b", "YCSB-B", "B"}, {"ycsb_c", "YCSB-C", "C"}, {"update", "update", "update"}}};
// Slices of each state in a round: one for each workload, and two for the shard's processor time.
constexpr uint64_t kSlicesPerState = kWorkloads.size() + 2;

double Seconds(Time::duration time) { return std::chrono::duration<double>(time).count(); }

// Counters of the server.
struct Counters {
  Cleaned cleaned;
  uint64_t free_regions = 0;
  uint64_t asked = 0;  // Shards that clean because they were asked to.
  bool operator==(const Counters& other) const {
    return cleaned.regions == other.cleaned.regions && cleaned.copied == other.cleaned.copied &&
           free_regions == other.free_regions;
  }
};

// Puts of many keys, several in flight.
class Writer {
 public:
  Writer(std::unique_ptr<Client> client, const bench::Values& values)
      : client_(std::move(client)), values_(values), value_(values.value_bytes(), '\0') {}

  // REQUIRES: fewer than kDepth are in flight.
  void Put(uint64_t record) {
    values_.Fill(value_, record, sequence_++);
    Started(client_->PutAsync(AsView(bench::KeyOf(record)), value_, [this](const Status& status) { Done(status); }));
  }
  void Delete(uint64_t record) {
    WaitForOne();
    Started(client_->DeleteAsync(AsView(bench::KeyOf(record)), [this](const Status& status) { Done(status); }));
  }
  // Puts as soon as one more may be in flight.
  void PutNext(uint64_t record) {
    WaitForOne();
    Put(record);
  }
  void Poll() {
    if (in_flight_ > 0) client_->Poll();
  }
  [[nodiscard]] uint32_t in_flight() const { return in_flight_; }
  // Waits until nothing is in flight. Returns the first failure so far.
  Status Drain() {
    if (auto status = client_->Drain(); !status.ok()) return status;
    return status_;
  }
  [[nodiscard]] bool failed() const { return !status_.ok(); }
  [[nodiscard]] Client& client() { return *client_; }

 private:
  void WaitForOne() {
    while (in_flight_ >= kDepth && status_.ok()) {
      if (client_->Poll() == 0) std::this_thread::yield();
    }
  }
  void Started(const Status& status) {
    if (status.ok()) ++in_flight_;
    Keep(status);
  }
  void Done(const Status& status) {
    --in_flight_;
    Keep(status);
  }
  void Keep(const Status& status) {
    if (status_.ok() && !status.ok()) status_ = status;
  }

  std::unique_ptr<Client> client_;
  const bench::Values& values_;
  std::string value_;
  uint64_t sequence_ = 0;
  uint32_t in_flight_ = 0;
  Status status_;
};

class Measurement {
 public:
  Measurement(const Settings& settings, const floors::ServerProcess::Ready& server)
      : settings_(settings),
        server_(server),
        values_(settings.value_bytes),
        random_(settings.seed),
        value_(settings.value_bytes, '\0'),
        read_(settings.value_bytes) {
    report_.machine = floors::ThisMachine();
    report_.address = server.address;
    report_.durability = server.durability;
  }

  Status Prepare() {
    ClientOptions options;
    options.polling = Polling::kBusy;
    options.queue_depth = kDepth;
    auto client = Client::Connect(server_.address, options);
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
    client = Client::Connect(server_.address, options);
    if (!client.ok()) return client.status();
    writer_ = std::make_unique<Writer>(*std::move(client), values_);

    const auto info = client_->ServerInfo();
    if (!info.ok()) return info.status();
    std::map<std::string, std::string> named(info->begin(), info->end());
    if (named["keys"] != "0") {
      return {Code::kInvalidArgument,
              "--pool: it has keys already, so how much of the log is live would not be as --live says"};
    }
    report_.flush_method = named["flush_method"];
    report_.log_bytes = std::stoull(named["log_bytes_total"]);
    report_.region_bytes = std::stoull(named["region_bytes"]);
    if (settings_.value_bytes > client_->max_value_bytes(kKeyBytes)) {
      return {Code::kInvalidArgument, fmt::format("--value-bytes: such a pool takes values up to {} bytes",
                                                  client_->max_value_bytes(kKeyBytes))};
    }
    return {};
  }

  // Overwrites uniformly, at one share of live data after the other.
  Status MeasureCopying() {
    for (const uint64_t share : kShares) {
      const auto cleaned = MeasureCopyingAt(share);
      if (!cleaned.ok()) {
        return {cleaned.status().code(),
                fmt::format("with {} % of the log live: {}", share, cleaned.status().message())};
      }
      report_.copying.push_back({share, *cleaned});
      if (auto status = CheckAll(); !status.ok()) return status;
    }
    return {};
  }

  Status MeasureLatencies() {
    if (auto status = SetKeys(settings_.live); !status.ok()) return status;
    report_.keys = keys_;
    for (const NamedWorkload& workload : kWorkloads) {
      report_.workloads.push_back({workload.name, workload.title, {}});
      inserts_.push_back(std::make_unique<bench::Inserts>(MeasuredKeys(), 0));
      sources_.emplace_back(bench::FindWorkload(workload.ycsb).value(), MeasuredKeys(),
                            settings_.seed + sources_.size(), *inserts_.back());
    }
    for (uint64_t round = 0; round < settings_.rounds; ++round) {
      const auto room = MakeRoom();
      if (!room.ok()) return room.status();
      if (auto status = Round(round, State::kIdle, *room / kSlicesPerState); !status.ok()) return status;
      if (auto status = FillUp(); !status.ok()) return status;
      if (auto status = Round(round, State::kCleaning, *room / kSlicesPerState); !status.ok()) return status;
    }
    return {};
  }

  // Checks that every key has its value. After this check at a large share, most pages of the log are mapped in this
  // process. Then no measured get has to wait for the kernel to map a page.
  Status CheckAll() {
    for (uint64_t record = 0; record < keys_; ++record) {
      const auto size = client_->Get(AsView(bench::KeyOf(record)), std::as_writable_bytes(std::span(read_)));
      if (!size.ok()) return size.status();
      const std::string_view value(read_.data(), *size);
      if (value.size() < bench::Values::kHeaderBytes) continue;  // The value is too short to name its key.
      if (const auto wrong = values_.Check(value, record); !wrong.empty()) return {Code::kInternal, "a get: " + wrong};
    }
    return {};
  }

  // Empties the pool, so that a device can be measured again.
  Status RemoveKeys() {
    while (keys_ > 0) writer_->Delete(--keys_);
    return writer_->Drain();
  }

  [[nodiscard]] Report TakeReport() { return std::move(report_); }

 private:
  // The number of measured keys. The background's keys follow them.
  [[nodiscard]] uint64_t MeasuredKeys() const { return keys_ / 2; }
  [[nodiscard]] uint64_t BackgroundKey() { return MeasuredKeys() + random_.Uniform(keys_ - MeasuredKeys()); }

  Result<Counters> Look() {
    const auto info = client_->ServerInfo();
    if (!info.ok()) return info.status();
    Counters counters;
    for (const auto& [name, value] : *info) {
      if (name == "clean_regions") counters.cleaned.regions = std::stoull(value);
      if (name == "clean_bytes_copied") counters.cleaned.copied = std::stoull(value);
      if (name == "clean_bytes_freed") counters.cleaned.freed = std::stoull(value);
      if (name == "puts_delayed") counters.cleaned.delayed = std::stoull(value);
      if (name == "free_regions") counters.free_regions = std::stoull(value);
      if (name == "cleaning") counters.asked = std::stoull(value);
    }
    return counters;
  }

  Result<Counters> WaitUntilQuiet() {
    if (auto status = writer_->Drain(); !status.ok()) return status;
    auto last = Look();
    for (int same = 0; last.ok() && same < kQuietLooks; ++same) {
      std::this_thread::sleep_for(kBetweenLooks);
      const auto now = Look();
      if (!now.ok() || !(*now == *last) || now->asked > 0) same = -1;
      last = now;
    }
    return last;
  }

  // Sets the number of keys so that this share of the log is live.
  Status SetKeys(uint64_t share) {
    const uint64_t keys = report_.log_bytes / settings_.object_bytes() * share / 100;
    for (; keys_ < keys && !writer_->failed(); ++keys_) writer_->PutNext(keys_);
    while (keys_ > keys && !writer_->failed()) writer_->Delete(--keys_);
    if (keys < 2)
      return {Code::kInvalidArgument, "the pool is too small for values of this size; give a larger --pool-size"};
    return writer_->Drain();
  }

  Result<Cleaned> MeasureCopyingAt(uint64_t share) {
    if (auto status = SetKeys(share); !status.ok()) return status;
    const uint64_t overwrites = report_.log_bytes / settings_.object_bytes();
    // Overwrites until dead space is spread as these overwrites spread it.
    if (auto status = Overwrite(overwrites); !status.ok()) return status;
    const auto before = Look();
    if (!before.ok()) return before.status();
    if (auto status = Overwrite(settings_.times * overwrites); !status.ok()) return status;
    const auto after = Look();
    if (!after.ok()) return after.status();
    return after->cleaned - before->cleaned;
  }

  Status Overwrite(uint64_t puts) {
    for (; puts > 0 && !writer_->failed(); --puts) writer_->PutNext(random_.Uniform(keys_));
    return writer_->Drain();
  }

  // The server cleans when this number of regions is free (docs/cleaning.md). If that is wrong, the server is not idle,
  // and the run fails.
  [[nodiscard]] uint64_t FreeWhenDue() const { return 2 + report_.log_bytes / report_.region_bytes / 32; }
  [[nodiscard]] uint64_t PutsPerRegion() const { return report_.region_bytes / settings_.object_bytes() + 1; }

  // Cleans all that can be cleaned. Returns the bytes that may be written after that before cleaning is due.
  Result<uint64_t> MakeRoom() {
    if (auto status = client_->Clean(); !status.ok()) return status;
    const auto now = WaitUntilQuiet();
    if (!now.ok()) return now.status();
    const uint64_t kept = FreeWhenDue() + 1;
    const uint64_t wanted = report_.log_bytes / 100 * (100 - settings_.live) / 4;
    const uint64_t room = now->free_regions > kept ? (now->free_regions - kept) * report_.region_bytes : 0;
    if (room >= wanted) return room;
    return Status(Code::kResourceExhausted,
                  fmt::format("--live: with {} % there is no room for slices without cleaning", settings_.live));
  }

  // Fills the log until the cleaner works.
  Status FillUp() {
    const auto before = Look();
    if (!before.ok()) return before.status();
    const uint64_t regions = report_.log_bytes / report_.region_bytes;
    for (uint64_t filled = 0; filled < 4 * regions; ++filled) {
      for (uint64_t i = 0; i < PutsPerRegion() && !writer_->failed(); ++i) writer_->PutNext(BackgroundKey());
      const auto now = Look();
      if (writer_->failed() || !now.ok() || now->cleaned.regions >= before->cleaned.regions + regions / 8) break;
    }
    return writer_->Drain();
  }

  Status Round(uint64_t round, State state, uint64_t bytes) {
    for (size_t i = 0; i < kWorkloads.size(); ++i) {
      const size_t workload = (round + i) % kWorkloads.size();
      if (auto status = Slice(workload, state, bytes); !status.ok()) return status;
    }
    return MeasureShard(round, state, bytes);
  }

  // Runs one operation after the other, with the background's puts beside them.
  Status Slice(size_t workload, State state, uint64_t bytes) {
    if (state == State::kIdle) {
      if (const auto quiet = WaitUntilQuiet(); !quiet.ok()) return quiet.status();
    }
    Slices& slices = report_.workloads[workload].Of(state);
    const auto before = Look();
    if (!before.ok()) return before.status();
    const double cleaner = bench::ThreadSeconds(server_.pid, "erda-clean");
    const auto begin = Time::now();
    Status status = Operate(&sources_[workload], settings_.rate, bytes, &slices);
    slices.seconds += Seconds(Time::now() - begin);
    slices.cleaner_seconds += bench::ThreadSeconds(server_.pid, "erda-clean") - cleaner;
    const auto after = Look();
    if (!after.ok()) return after.status();
    slices.cleaned += after->cleaned - before->cleaned;
    return status;
  }

  // Measures the shard with few puts, so that it sleeps between them: once with gets and once without. The order
  // alternates, since the cleaner may still work on earlier writes.
  Status MeasureShard(uint64_t round, State state, uint64_t bytes) {
    constexpr size_t kGetsOnly = 2;
    ShardTime& time = report_.shard_time[static_cast<size_t>(state)];
    const uint64_t rate = std::max<uint64_t>(1, settings_.rate / kSlowness);
    for (const bool with_gets : {round % 2 == 0, round % 2 != 0}) {
      Slices slices;
      const double shard = bench::ThreadSeconds(server_.pid, "erda-shard");
      const auto begin = Time::now();
      Status status = Operate(with_gets ? &sources_[kGetsOnly] : nullptr, rate, bytes, &slices);
      if (!status.ok()) return status;
      (with_gets ? time.seconds_with : time.seconds_without) += Seconds(Time::now() - begin);
      (with_gets ? time.shard_with : time.shard_without) += bench::ThreadSeconds(server_.pid, "erda-shard") - shard;
      time.gets += slices.get.count();
    }
    return {};
  }

  // `source` has the measured operations. If it is null, only the background puts.
  Status Operate(bench::OpSource* source, uint64_t rate, uint64_t bytes, Slices* slices) {
    const uint64_t most_puts = bytes / settings_.object_bytes();
    const auto between_puts = std::chrono::nanoseconds(1'000'000'000 / rate);
    uint64_t puts = 0;
    auto now = Time::now();
    const auto end = now + std::chrono::milliseconds(settings_.slice_ms);
    auto next_put = now + between_puts;
    while (now < end && puts < most_puts && !writer_->failed()) {
      if (source == nullptr) {
        Relax::Pause();
        now = Time::now();
      } else {
        const bench::Op op = source->Next();
        const bench::Key key = bench::KeyOf(op.record);
        const bool gets = op.kind == OpKind::kGet;
        if (!gets) values_.Fill(value_, op.record, puts++);
        const auto begin = Time::now();
        Status status = gets ? client_->Get(AsView(key), std::as_writable_bytes(std::span(read_))).status()
                             : client_->Put(AsView(key), value_);
        now = Time::now();
        if (!status.ok()) return status;
        (gets ? slices->get : slices->put).Record(static_cast<uint64_t>((now - begin).count()));
      }
      writer_->Poll();
      if (now < next_put || writer_->in_flight() == kDepth) continue;
      writer_->Put(BackgroundKey());
      ++puts;
      next_put += between_puts;
      if (next_put < now) next_put = now;  // Late puts are not made up for at once.
    }
    return writer_->Drain();
  }

  const Settings& settings_;
  const floors::ServerProcess::Ready& server_;
  const bench::Values values_;
  Report report_;
  Random random_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Writer> writer_;
  uint64_t keys_ = 0;
  std::vector<std::unique_ptr<bench::Inserts>> inserts_;
  std::vector<bench::OpSource> sources_;
  std::string value_;
  std::vector<char> read_;
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
  serve.index_entries = 2 * settings.pool_size / settings.object_bytes();
  auto server = floors::ServerProcess::StartBeside(program, serve);
  if (!server.ok()) return server.status();

  Status status;
  Report report;
  {
    Measurement measurement(settings, (*server)->ready());
    status = measurement.Prepare();
    if (status.ok()) status = measurement.MeasureCopying();
    if (status.ok()) status = measurement.MeasureLatencies();
    if (status.ok()) status = measurement.CheckAll();
    if (status.ok()) status = measurement.RemoveKeys();
    report = measurement.TakeReport();
  }
  const Status stopped = (*server)->Stop();
  if (!status.ok()) return status;
  if (!stopped.ok()) return stopped;
  return report;
}

}  // namespace erda::cleaning
