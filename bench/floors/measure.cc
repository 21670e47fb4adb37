#include "bench/floors/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "bench/floors/memory_work.h"
#include "bench/floors/perftest.h"
#include "bench/floors/raw.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "erda/client.h"
#include "format/object.h"
#include "tools/shared/heartbeat.h"

namespace erda::floors {

namespace {

using Time = std::chrono::steady_clock;

// Each kind has a turn in each round. So a run of fewer rounds has fewer operations, but the same ratios.
constexpr uint64_t kRoundsMin = 3;
constexpr std::string_view kKeyBegin = "erda-bench.";
// Runs of ib_read_lat, spread over the rounds.
constexpr uint64_t kIbReadLatRuns = 3;

double NanosecondsOf(Time::duration time) { return std::chrono::duration<double, std::nano>(time).count(); }

// Returns the time of one look at the clock: the least mean of several tries.
double ClockCost() {
  constexpr int kLooks = 100;
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 20; ++i) {
    const auto begin = Time::now();
    auto end = begin;
    for (int look = 0; look < kLooks; ++look) end = Time::now();
    least = std::min(least, NanosecondsOf(end - begin) / kLooks);
  }
  return least;
}

std::optional<format::FlushMethod> FlushMethodNamed(std::string_view name) {
  using format::FlushMethod;
  for (const auto method : {FlushMethod::kNone, FlushMethod::kReadAfterWrite, FlushMethod::kServerFlush}) {
    if (name == format::FlushMethodName(method)) return method;
  }
  return std::nullopt;
}

class Measurement {
 public:
  // `trusted` and `guarded` are servers for delegated puts alone. Clients of the one may write anywhere; those of the
  // other have the least rights.
  Measurement(const Settings& settings, const ServerProcess::Ready& server, const ServerProcess::Ready& trusted,
              const ServerProcess::Ready& guarded)
      : settings_(settings), server_(server), trusted_server_(trusted), guarded_server_(guarded) {
    report_.machine = ThisMachine();
    report_.address = server.address;
    report_.durability = server.durability;
    report_.clock_ns = ClockCost();
    value_.assign(settings.value_bytes, '\0');
    for (size_t i = 0; i < value_.size(); ++i) value_[i] = static_cast<char>('a' + i % 26);
    large_value_.assign(kLargeBytes, 'l');
    read_.resize(settings.value_bytes);
    stride_ = StrideFor(settings.value_bytes);
    places_ = std::min(kPlacesMax, (server.area.bytes - std::min(server.area.bytes, kRawEntriesBytes)) / stride_);
    for (uint64_t i = 0; i < places_ + kPlacesMax; ++i) {
      Key& key = keys_.emplace_back();
      const std::string text = fmt::format("{}{:0{}}", kKeyBegin, i, kKeyBytes - kKeyBegin.size());
      std::copy_n(text.begin(), key.size(), key.begin());
    }
  }

  Status Prepare() {
    const uint64_t large_at = kRawEntriesBytes + kPlacesMax * stride_;
    large_places_ = server_.area.bytes <= large_at ? 0 : (server_.area.bytes - large_at) / StrideFor(kLargeBytes);
    if (places_ == 0 || large_places_ == 0)
      return {Code::kResourceExhausted, "the pool is too small for values of this size; give a larger --pool-size"};
    if (auto status = ConnectEngine(); !status.ok()) return status;
    auto raw = RawClient::Connect(server_.raw_address, settings_.value_bytes, flush_);
    if (!raw.ok()) return raw.status();
    raw_ = *std::move(raw);
    std::copy(AsBytes(value_).begin(), AsBytes(value_).end(), raw_->body().begin() + format::kChecksumBytes);
    memory_work_.Prepare(std::span(keys_).first(places_), value_);
    return Fill();
  }

  Status Run() {
    auto fastest = FastestOp();
    if (!fastest.ok()) return fastest.status();
    report_.plan =
        PlanFor(settings_, settings_.block_ops != 0 ? settings_.block_ops : BlockFor(report_.clock_ns, *fastest));
    std::vector<double> ib_read_lat;
    const uint64_t rounds = report_.plan.rounds;
    const uint64_t every = std::max<uint64_t>(1, rounds / kIbReadLatRuns);
    const auto begin = Time::now();
    const std::chrono::seconds most(settings_.seconds);
    for (uint64_t round = 0; round < rounds; ++round) {
      const auto now = Time::now();
      if (most.count() != 0 && now - begin >= most && round >= kRoundsMin) {
        report_.plan.rounds = round;
        break;
      }
      heartbeat_.Tell(fmt::format("floors: {} of {} rounds done", round, rounds));
      if (auto status = Round(); !status.ok()) return status;
      if (auto status = CheckThatNothingIsCleaned(); !status.ok()) return status;
      if (report_.ib_read_lat_note.empty() && round % every == every / 2) RunIbReadLat();
    }
    return Check();
  }

  [[nodiscard]] Report TakeReport() { return std::move(report_); }

 private:
  tools::Heartbeat heartbeat_{"erda-bench", "floors: connecting, and filling the pool"};
  [[nodiscard]] std::string_view KeyAt(uint64_t i) const {
    const Key& key = keys_[i];
    return {key.data(), key.size()};
  }
  [[nodiscard]] uint64_t EntryAt(uint64_t i) const { return server_.area.offset + i % places_ * kCacheLine; }
  [[nodiscard]] uint64_t PlaceAt(uint64_t i) const {
    return server_.area.offset + kRawEntriesBytes + i % places_ * stride_;
  }
  [[nodiscard]] uint64_t LargePlaceAt(uint64_t i) const {
    return server_.area.offset + kRawEntriesBytes + kPlacesMax * stride_ + i % large_places_ * StrideFor(kLargeBytes);
  }

  Status ConnectEngine() {
    ClientOptions options;
    options.polling = Polling::kBusy;  // Like the raw client, which never sleeps.
    options.put_path = PutPath::kInline;
    options.cache_entries = 0;  // Its gets are cold.
    auto client = Client::Connect(server_.address, options);
    if (!client.ok()) return client.status();
    inline_ = *std::move(client);
    options.put_path = PutPath::kReserve;
    client = Client::Connect(server_.address, options);
    if (!client.ok()) return client.status();
    reserve_ = *std::move(client);
    options.put_path = PutPath::kDelegate;
    client = Client::Connect(server_.address, options);
    if (!client.ok()) return client.status();
    delegate_ = *std::move(client);
    client = Client::Connect(trusted_server_.address, options);
    if (!client.ok()) return client.status();
    trusted_ = *std::move(client);
    client = Client::Connect(guarded_server_.address, options);
    if (!client.ok()) return client.status();
    guarded_ = *std::move(client);
    options.cache_entries = ClientOptions().cache_entries;
    client = Client::Connect(server_.address, options);
    if (!client.ok()) return client.status();
    warm_ = *std::move(client);

    auto info = guarded_->ServerInfo();
    if (!info.ok()) return info.status();
    for (const auto& [name, value] : *info) {
      if (name == "placing") report_.least_rights = value;
    }
    info = inline_->ServerInfo();
    if (!info.ok()) return info.status();
    for (const auto& [name, value] : *info) {
      if (name == "flush_method") report_.flush_method = value;
    }
    const auto flush = FlushMethodNamed(report_.flush_method);
    if (!flush)
      return {Code::kInternal, "this program does not know the server's flush method " + report_.flush_method};
    flush_ = *flush;
    return {};
  }

  // Puts a value for every key, and writes one to every raw place.
  Status Fill() {
    for (uint64_t i = 0; i < places_; ++i) {
      if (auto status = inline_->Put(KeyAt(i), value_); !status.ok()) return status;
      if (auto status = raw_->WriteAndFlush(PlaceAt(i)); !status.ok()) return status;
    }
    // The client's first put asks for a chunk, and takes another path.
    for (uint64_t i = 0; i < kPlacesMax; ++i) {
      if (auto status = PutLarge(*delegate_, i); !status.ok()) return status;
      if (auto status = PutLarge(*trusted_, i); !status.ok()) return status;
      if (auto status = PutLarge(*guarded_, i); !status.ok()) return status;
      if (auto status = raw_->WriteAndAsk(LargePlaceAt(i)); !status.ok()) return status;
    }
    return Check();
  }
  // Puts to keys that no get reads.
  Status PutLarge(Client& client, uint64_t i) { return client.Put(KeyAt(places_ + i % kPlacesMax), large_value_); }

  // Checks that the operations work: gets return the values, and the raw values are where they were written.
  Status Check() {
    for (uint64_t i = 0; i < places_; ++i) {
      if (auto status = Get(i); !status.ok()) return status;
      if (AsString(read_) != value_) return {Code::kInternal, "a get returned another value than was put"};
      if (auto status = raw_->Read(PlaceAt(i), ObjectReadBytes(settings_.value_bytes)); !status.ok()) return status;
      const auto value = raw_->read_bytes().subspan(format::ValueOffset(kKeyBytes), value_.size());
      if (AsString(value) != value_) return {Code::kInternal, "a raw Read returned other bytes than were written"};
    }
    return {};
  }

  Status Get(uint64_t i) { return GetBy(*inline_, i); }
  Status GetBy(Client& client, uint64_t i) {
    const auto size = client.Get(KeyAt(i % places_), read_);
    if (!size.ok()) return size.status();
    return *size == read_.size() ? Status() : Status(Code::kInternal, "a get returned a value of another size");
  }

  Result<double> FastestOp() {
    constexpr uint64_t kOps = 64;
    double least = std::numeric_limits<double>::max();
    for (int tries = 0; tries < 3; ++tries) {
      const auto begin = Time::now();
      for (uint64_t i = 0; i < kOps; ++i) {
        if (auto status = raw_->Read(PlaceAt(i), kSmallReadBytes); !status.ok()) return status;
      }
      least = std::min(least, NanosecondsOf(Time::now() - begin) / kOps);
    }
    return least;
  }

  // Runs one kind's turn, in blocks of `count` operations: ops(first, count). `before` runs before each block, and is
  // not timed.
  template <class Ops, class Before>
  Status Blocks(Figure figure, uint64_t count, Ops&& ops, Before&& before) {
    // Waits until the peer of the previous kind has fallen asleep: there may be only two processors for the two threads
    // that look for work.
    std::this_thread::sleep_for(3 * kSpin);
    const Plan& plan = report_.plan;
    for (uint64_t block = 0; block < plan.warm_blocks + plan.blocks; ++block) {
      if (Status status = before(next_); !status.ok()) return status;
      const auto begin = Time::now();
      if (Status status = ops(next_, count); !status.ok()) return status;
      const double ns = NanosecondsOf(Time::now() - begin);
      next_ += count;
      if (block >= plan.warm_blocks) report_.Of(figure).Add(ns / 1000 / static_cast<double>(count));
    }
    return {};
  }
  // Runs one operation at a time.
  template <class Op, class Before = Status (*)(uint64_t)>
  Status Turn(
      Figure figure, Op&& op, Before&& before = [](uint64_t) { return Status(); }) {
    const auto ops = [&op](uint64_t first, uint64_t count) {
      for (uint64_t i = first; i < first + count; ++i) {
        if (Status status = op(i); !status.ok()) return status;
      }
      return Status();
    };
    return Blocks(figure, report_.plan.block_ops, ops, std::forward<Before>(before));
  }
  // Runs many operations in flight. A block is so long that its beginning and end hardly count.
  template <class Ops>
  Status DeepTurn(Figure figure, Ops&& ops) {
    const uint64_t count = std::max<uint64_t>(report_.plan.block_ops, 32 * kDeep);
    return Blocks(figure, count, std::forward<Ops>(ops), [](uint64_t) { return Status(); });
  }

  // Gets all keys until the client remembers their locations.
  Status WarmUp() {
    for (int look = 0; look < 3; ++look) {
      for (uint64_t i = 0; i < places_; ++i) {
        if (auto status = GetBy(*warm_, i); !status.ok()) return status;
      }
    }
    return {};
  }

  // Runs warm gets, kDeep in flight. Each starts where another one has ended.
  Status GetMany(uint64_t first, uint64_t count) {
    struct State {
      Measurement& measurement;
      uint64_t next;
      const uint64_t end;
      uint64_t done = 0;
      Status status;

      void Start() {
        Client& client = *measurement.warm_;
        const auto ended = [this](const Result<std::string_view>& value) {
          ++done;
          const bool right = value.ok() && value->size() == measurement.value_.size();
          if (!right && status.ok()) status = value.ok() ? Status(Code::kInternal) : value.status();
          if (next < end) Start();
        };
        const Status started = client.GetAsync(measurement.KeyAt(next++ % measurement.places_), ended);
        if (!started.ok()) status = started;
      }
    } state{*this, first, first + count, 0, Status()};
    for (uint32_t i = 0; i < kDeep && state.next < state.end; ++i) state.Start();
    while (state.done < count && state.status.ok()) warm_->Poll();
    return state.status;
  }

  Status Round() {
    const uint64_t object = ObjectReadBytes(settings_.value_bytes);
    const auto read_small = [this](uint64_t i) { return raw_->Read(PlaceAt(i), kSmallReadBytes); };
    const auto read_object = [this, object](uint64_t i) { return raw_->Read(PlaceAt(i), object); };
    const auto get = [this](uint64_t i) { return Get(i); };
    const auto ping_pong = [this](uint64_t) { return raw_->PingPong(); };
    const auto put_work = [this](uint64_t i) {
      return raw_->PutWork(PlaceAt(i), EntryAt(i), KeyAt(i % places_), value_);
    };
    const auto put_inline = [this](uint64_t i) { return inline_->Put(KeyAt(i % places_), value_); };
    const auto write_flush = [this](uint64_t i) { return raw_->WriteAndFlush(PlaceAt(i)); };
    const auto put_reserve = [this](uint64_t i) { return reserve_->Put(KeyAt(i % places_), value_); };
    // Keys that no other operation uses, a block at a time.
    const auto remove = [this](uint64_t i) { return inline_->Delete(KeyAt(places_ + i % kPlacesMax)); };
    const auto make = [this](uint64_t first) {
      for (uint64_t i = first; i < first + report_.plan.block_ops; ++i) {
        if (auto status = inline_->Put(KeyAt(places_ + i % kPlacesMax), value_); !status.ok()) return status;
      }
      return Status();
    };
    Status status = Turn(Figure::kRawRead64, read_small);
    if (status.ok()) status = Turn(Figure::kRawReadObject, read_object);
    if (status.ok()) status = Turn(Figure::kGetCold, get);
    if (status.ok()) status = Turn(Figure::kRawPingPong, ping_pong);
    if (status.ok()) status = Turn(Figure::kRawPutWork, put_work);
    if (status.ok()) status = Turn(Figure::kPutInline, put_inline);
    if (status.ok()) status = Turn(Figure::kRawWriteFlush, write_flush);
    if (status.ok()) status = Turn(Figure::kPutReserve, put_reserve);
    if (status.ok()) status = Turn(Figure::kDelete, remove, make);
    if (status.ok()) {
      status = Turn(Figure::kRawWriteAsk, [this](uint64_t i) { return raw_->WriteAndAsk(LargePlaceAt(i)); });
    }
    for (const auto& [figure, client] : {std::pair(Figure::kPutDelegate, delegate_.get()),
                                         {Figure::kPutTrusted, trusted_.get()},
                                         {Figure::kPutGuarded, guarded_.get()}}) {
      if (status.ok()) status = Turn(figure, [this, to = client](uint64_t i) { return PutLarge(*to, i); });
    }
    if (status.ok()) status = WarmUp();
    if (status.ok()) status = Turn(Figure::kGetWarm, [this](uint64_t i) { return GetBy(*warm_, i); });
    if (status.ok()) status = Turn(Figure::kMemoryWork, [this](uint64_t i) { return memory_work_.Get(i); });
    if (status.ok()) {
      status = DeepTurn(Figure::kRawReadsDeep, [this, object](uint64_t first, uint64_t count) {
        return raw_->ReadMany(count, object, [this, first](uint64_t i) { return PlaceAt(first + i); });
      });
    }
    if (status.ok()) {
      status = DeepTurn(Figure::kGetsDeep, [this](uint64_t first, uint64_t count) { return GetMany(first, count); });
    }
    return status;
  }

  Status CheckThatNothingIsCleaned() {
    for (Client* client : {inline_.get(), trusted_.get(), guarded_.get()}) {
      const auto info = client->ServerInfo();
      if (!info.ok()) return info.status();
      for (const auto& [name, value] : *info) {
        if (name != "clean_regions" || value == "0") continue;
        return {
            Code::kResourceExhausted,
            "the pool is too small for this number of operations, so the log was cleaned; give a larger --pool-size"};
      }
    }
    return {};
  }

  void RunIbReadLat() {
    if (settings_.fabric != "verbs") {
      report_.ib_read_lat_note = "only with --fabric verbs";
      return;
    }
    const std::string host = HostOf(server_.address);
    auto device = FindDevice("/sys/class/infiniband", host);
    if (!settings_.device.empty()) device = RdmaDevice{settings_.device, device ? device->gid_index : 0};
    if (device && settings_.gid_index >= 0) device->gid_index = settings_.gid_index;
    if (!device) {
      report_.ib_read_lat_note = "no RDMA device has the address " + host + "; --device and --gid-index name one";
      return;
    }
    std::this_thread::sleep_for(3 * kSpin);
    const auto typical = floors::RunIbReadLat(*device, host);
    if (!typical.ok()) {
      report_.ib_read_lat_note = std::string(typical.status().message());
      report_.ib_read_lat_us.reset();
      return;
    }
    ib_read_lat_.Add(*typical);
    report_.ib_read_lat_us = ib_read_lat_.median();
  }

  const Settings& settings_;
  const ServerProcess::Ready& server_;
  const ServerProcess::Ready& trusted_server_;
  const ServerProcess::Ready& guarded_server_;
  Report report_;
  Samples ib_read_lat_;
  std::string value_;
  std::vector<std::byte> read_;
  std::vector<Key> keys_;
  uint64_t stride_ = 0;
  uint64_t places_ = 0;
  uint64_t large_places_ = 0;
  std::string large_value_;
  uint64_t next_ = 0;  // Counts operations, so that each goes to another key or place than the one before.
  format::FlushMethod flush_ = format::FlushMethod::kNone;
  std::unique_ptr<Client> inline_;
  std::unique_ptr<Client> reserve_;
  std::unique_ptr<Client> delegate_;
  std::unique_ptr<Client> trusted_;  // Clients of the other servers.
  std::unique_ptr<Client> guarded_;
  std::unique_ptr<Client> warm_;  // Remembers locations.
  MemoryWork memory_work_;
  std::unique_ptr<RawClient> raw_;
};

}  // namespace

Result<Report> Measure(const Settings& settings, const std::string& program) {
  const TemporaryFolder folder;
  ServeSettings serve;
  auto address = OwnAddress(settings.address, folder);
  if (!address.ok()) return address.status();
  serve.address = *std::move(address);
  serve.raw_address = settings.raw_address.empty() ? RawAddressOf(serve.address) : settings.raw_address;
  serve.pool = settings.pool;
  serve.pool_size = settings.pool_size != 0 ? settings.pool_size : PoolBytesFor(settings);
  serve.raw_bytes = RawBytesFor(settings.value_bytes);
  // For a new pool: the index is sized for the keys of the run, and not for all keys that the pool could hold.
  serve.index_entries = kIndexSlots;
  // Starts the server first, as a new program: an RDMA device's knowledge of a process does not survive a fork.
  auto server = ServerProcess::Start(program, serve);
  if (!server.ok()) return server.status();
  ServeSettings beside = serve;
  beside.address = RawAddressOf(serve.raw_address);
  beside.raw_address.clear();
  beside.pool = "dram:";
  beside.pool_size = PoolBytesFor(settings);
  beside.beside_raw = true;
  auto trusted = ServerProcess::Start(program, beside);
  if (!trusted.ok()) return trusted.status();
  beside.address = RawAddressOf(beside.address);
  beside.least_rights = true;
  auto guarded = ServerProcess::Start(program, beside);
  if (!guarded.ok()) return guarded.status();
  StayOnOneProcessor(Side::kMeasuring);  // The child has chosen its processor already.

  Status status;
  Report report;
  {
    Measurement measurement(settings, (*server)->ready(), (*trusted)->ready(), (*guarded)->ready());
    status = measurement.Prepare();
    if (status.ok()) status = measurement.Run();
    report = measurement.TakeReport();
  }
  for (auto* const other : {trusted->get(), guarded->get()}) {
    if (const Status ended = other->Stop(); status.ok()) status = ended;
  }
  const Status stopped = (*server)->Stop();
  // If the log grew into the place of the raw operations, operations fail in many ways for that one reason.
  if (stopped.code() == Code::kResourceExhausted) return stopped;
  if (!status.ok()) return status;
  if (!stopped.ok()) return stopped;
  return report;
}

}  // namespace erda::floors
