// The synchronous calls: thin layers over the engine's asynchronous ones, and the waiting between them.
#include "erda/client.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <random>

#include "base/bytes.h"
#include "base/option_bounds.h"
#include "base/relax.h"
#include "base/token_file.h"
#include "client/access.h"
#include "client/engine.h"
#include "client/looks.h"
#include "client/scan.h"
#include "client/turn.h"
#include "format/activity.h"
#include "format/control_block.h"
#include "format/durability.h"

namespace erda {

using client::Engine;
using client::EngineOptions;

namespace {

// How long a call looks for its completion before it sleeps, and how many looks there are between two at the clock.
constexpr std::chrono::microseconds kSpin{50};
constexpr uint32_t kLooksPerClock = 64;
// A sleeping call wakes up so often to look at its deadline.
constexpr std::chrono::milliseconds kSleep{10};

uint64_t RandomId() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

// Runs what copies a value for the caller. Without memory a status says so, and that needs none.
template <class Copy>
Status Copied(Copy&& copy) try {
  copy();
  return {};
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

Result<std::string> CopyOf(std::string_view value) { return std::string(value); }
Result<Versioned> CopyOf(const VersionedView& got) {
  return Versioned{std::string(got.value), got.version, got.expires};
}

Status CheckOptions(const ClientOptions& options) {
  Bounds bounds;
  bounds.Check(kClientBounds.queue_depth, options.queue_depth);
  bounds.Check(kClientBounds.cache_entries, options.cache_entries);
  bounds.Check(kClientBounds.timeout, options.timeout.count());
  bounds.Check(kClientBounds.ack, static_cast<uint8_t>(options.ack));
  bounds.Check(kClientBounds.put_path, static_cast<uint8_t>(options.put_path));
  bounds.Check(kClientBounds.polling, static_cast<uint8_t>(options.polling));
  if (!bounds.status().ok()) return bounds.status();
  if (!options.token.empty() && !options.token_file.empty()) {
    return {Code::kInvalidArgument, "a token, or the name of a file with one, but not both"};
  }
  if (!options.token.empty()) {
    if (const std::string what = CheckToken(options.token); !what.empty()) return {Code::kInvalidArgument, what};
  }
  return {};
}

using InfoPairs = std::vector<std::pair<std::string, std::string>>;

void AddTimesTo(InfoPairs& info, const std::string& name, const LatencyHistogram& times) {
  if (times.count() == 0) return;
  for (const auto& [quantile, share] : {std::pair("p50", 0.5), {"p99", 0.99}, {"p999", 0.999}}) {
    info.emplace_back(name + "_" + quantile + "_ns", std::to_string(times.Quantile(share).count()));
  }
}

// What is 0 of it is left out.
void AddActivityTo(InfoPairs& info, const Activity& activity) {
  for (const OperationStats& operation : activity.operations) {
    const std::string name = "requests_" + operation.kind;
    for (size_t i = 0; i < OperationStats::kOutcomes; ++i) {
      if (operation.outcomes[i] == 0) continue;
      info.emplace_back(name + "_" + OperationStats::OutcomeName(i), std::to_string(operation.outcomes[i]));
    }
    AddTimesTo(info, name, operation.time);
  }
  AddTimesTo(info, "persist", activity.persist);
  AddTimesTo(info, "clean_region", activity.clean_region);
  for (const FabricStats& fabric : activity.fabrics) {
    const std::string name = "fabric_" + fabric.scheme + (fabric.device.empty() ? "" : "_" + fabric.device) + "_";
    info.emplace_back(name + "connections", std::to_string(fabric.connections));
    info.emplace_back(name + "requests", std::to_string(fabric.requests));
    info.emplace_back(name + "refused", std::to_string(fabric.refused));
    info.emplace_back(name + "violations", std::to_string(fabric.violations));
  }
}

}  // namespace

class Client::Impl {
 public:
  Impl(std::unique_ptr<Engine> engine, Polling polling, std::chrono::milliseconds timeout)
      : engine_(std::move(engine)), polling_(polling), timeout_(timeout) {}

  Engine& engine() { return *engine_; }
  client::Turns& turns() { return turns_; }

  // One call of the caller's, which returns an R. No memory: a status says so.
  template <class R, class Body>
  R Call(Body&& body) {
    const client::Turn turn(turns_);
    return turn.is_mine() ? OrNoMemory<R>(body) : R(turns_.Refusal());
  }
  // The same of one that does not wait, and so may come from a callback.
  template <class Body>
  Status Start(Body&& body) {
    const client::NestedTurn turn(turns_);
    return turn.is_mine() ? OrNoMemory<Status>(body) : turns_.Refusal();
  }

  // Polls until done() is true. It must become so: every operation ends by its deadline. What a callback of the
  // caller's throws meanwhile is thrown only then: what is waited for has its end here.
  template <class Done>
  void WaitFor(Done&& done) {
    std::exception_ptr thrown;
    Relax relax;
    Nanoseconds idle_since{0};
    enum class Wait : uint8_t { kNone, kLooks, kSleeps } wait = Wait::kNone;
    while (!done()) {
      size_t finished = 0;
      try {
        finished = engine_->Poll();
      } catch (...) {
        thrown = std::current_exception();
      }
      if (finished > 0 || engine_->went_on()) {
        if (wait == Wait::kLooks) looks_.Ended(true);
        wait = Wait::kNone;
        relax.Reset();
        idle_since = Nanoseconds(0);
        continue;
      }
      if (polling_ == Polling::kBusy) {
        Relax::Pause();
        continue;
      }
      if (wait == Wait::kNone) wait = polling_ == Polling::kAdaptive && looks_.Begin() ? Wait::kLooks : Wait::kSleeps;
      if (wait == Wait::kLooks) {
        relax.Step();
        if (relax.steps() % kLooksPerClock != 0) continue;
        const Nanoseconds now = SteadyClock::Instance().Now();
        if (idle_since.count() == 0) idle_since = now;
        if (now - idle_since <= kSpin) continue;
        looks_.Ended(false);
        wait = Wait::kSleeps;
      }
      ++sleeps_;
      engine_->Wait(kSleep);
    }
    if (thrown) std::rethrow_exception(thrown);
  }

  [[nodiscard]] ClientStats Stats() const {
    ClientStats stats = engine_->stats();
    stats.sleeps = sleeps_;
    return stats;
  }

  Status Connect() {
    const Nanoseconds deadline = SteadyClock::Instance().Now() + timeout_;
    for (;;) {
      auto up = engine_->Connect();
      if (!up.ok()) return up.status();
      if (*up) return {};
      engine_->Poll();
      if (auto status = engine_->TakeConnectError(); !status.ok()) return status;
      if (SteadyClock::Instance().Now() > deadline) {
        return {Code::kTimeout, engine_->address() + ": no answer in " + std::to_string(timeout_.count()) + " ms"};
      }
      engine_->Wait(std::chrono::milliseconds(1));
    }
  }

  // Runs one asynchronous call to its end.
  template <class Start>
  Status Run(Start&& start) {
    MakeRoom();
    bool finished = false;
    Status result;
    Status started = start([&](Status status) {
      result = std::move(status);
      finished = true;
    });
    if (!started.ok()) return started;
    WaitFor([&] { return finished; });
    return result;
  }

  // Runs one whose callback gets a result.
  template <class T, class Start>
  Result<T> RunFor(Start&& start) {
    MakeRoom();
    std::optional<Result<T>> result;
    Status started = start([&](Result<T> r) { result = std::move(r); });
    if (!started.ok()) return started;
    WaitFor([&] { return result.has_value(); });
    return *std::move(result);
  }

  // A get: take is given the value while it lives.
  template <class Take>
  Status RunGet(Take& take, std::string_view key) {
    VersionedView found;
    const Engine::Now now = engine_->GetNow(key, &found);
    if (now == Engine::Now::kNo) return RunGetOperation(take, key);
    return now == Engine::Now::kValue ? take(found.value) : Status(Code::kNotFound);
  }
  template <class Take, class... What>
  Status RunGetOperation(Take& take, const What&... what) {
    return RunTaking<std::string_view>(
        take, [&](Client::GetCallback&& done) { return engine_->Get(what..., std::move(done)); });
  }
  template <class Take>
  Status RunGetVersioned(Take& take, std::string_view key) {
    VersionedView found;
    const Engine::Now now = engine_->GetNow(key, &found);
    if (now != Engine::Now::kNo) return now == Engine::Now::kValue ? take(found) : Status(Code::kNotFound);
    return RunTaking<VersionedView>(
        take, [&](Client::GetVersionedCallback&& done) { return engine_->GetVersioned(key, std::move(done)); });
  }
  template <class View, class Take, class Start>
  Status RunTaking(Take& take, Start&& start) {
    struct State {
      bool finished = false;
      Status status;
      Take& take;
    } state{false, Status(), take};
    MakeRoom();
    // One pointer, so that std::function does not allocate.
    Status started = start([&state](Result<View> got) {
      // First: whatever happens next, the operation has its end, and the call must not wait for it.
      state.finished = true;
      const Status copied = Copied([&] { state.status = got.ok() ? state.take(*got) : got.status(); });
      if (!copied.ok()) state.status = Status(Code::kResourceExhausted);
    });
    if (!started.ok()) return started;
    WaitFor([&] { return state.finished; });
    return std::move(state.status);
  }

  // One result for each key, in their order.
  template <class T, class View, class Start>
  std::vector<Result<T>> GetAll(std::span<const std::string_view> keys, Start&& start) {
    struct State {
      std::vector<Result<T>> results;
      size_t finished = 0;
    } state;
    // From here on nothing must leave this call before all have finished: the callbacks use its state.
    const Status has_room = Copied([&] { state.results.resize(keys.size(), Status(Code::kResourceExhausted)); });
    if (!has_room.ok()) return {};
    const client::Turn turn(turns_);
    if (!turn.is_mine()) {
      for (Result<T>& result : state.results) result = turns_.Refusal();
      return std::move(state.results);
    }
    std::exception_ptr thrown;  // by a callback of the caller's
    for (size_t i = 0; i < keys.size(); ++i) {
      Status status;
      try {
        MakeRoom();
      } catch (...) {
        thrown = std::current_exception();  // when there was room
      }
      try {
        // Two words, so that std::function does not allocate.
        status = start(i, [&state, i](Result<View> got) {
          ++state.finished;
          const Status copied = Copied([&] { state.results[i] = got.ok() ? CopyOf(*got) : got.status(); });
          if (!copied.ok()) state.results[i] = copied;
        });
      } catch (const std::bad_alloc&) {
        status = Status(Code::kResourceExhausted);
      }
      if (!status.ok()) {
        state.results[i] = std::move(status);
        ++state.finished;
      }
    }
    WaitFor([&] { return state.finished == keys.size(); });
    if (thrown) std::rethrow_exception(thrown);
    return std::move(state.results);
  }

  // Room for one more operation, also when asynchronous ones fill the queue.
  void MakeRoom() {
    const auto has_room = [&] { return engine_->in_flight() < engine_->queue_depth(); };
    if (!has_room()) WaitFor(has_room);
  }

  Status ReadControls() {
    if (auto status = Connect(); !status.ok()) return status;
    const auto are_read = [&] { return engine_->ControlsRead(); };
    WaitFor(are_read);
    if (auto status = engine_->BeginReadControls(); !status.ok()) return status;
    WaitFor(are_read);
    // Not of a connection that ended meanwhile.
    auto up = engine_->Connect();
    if (!up.ok()) return up.status();
    return *up ? Status() : Status(Code::kUnavailable, engine_->address() + ": the connection was lost");
  }

  // What ReadControls has read.
  [[nodiscard]] Activity ActivityRead() const {
    Activity activity;
    for (const auto& link : engine_->links()) format::AddActivity(link->activity(), &activity);
    return activity;
  }

  std::vector<std::pair<std::string, std::string>> Info() {
    std::vector<std::pair<std::string, std::string>> info;
    const auto links = engine_->links();
    const format::HelloReply& hello = links[0]->hello();
    const auto number = [&](const char* name, uint64_t n) { info.emplace_back(name, std::to_string(n)); };
    std::string uuid;
    for (const uint8_t byte : hello.pool_uuid) {
      constexpr char kDigits[] = "0123456789abcdef";
      uuid.push_back(kDigits[byte >> 4]);
      uuid.push_back(kDigits[byte & 15]);
    }
    info.emplace_back("pool_uuid", uuid);
    number("server_id", hello.server_id);
    info.emplace_back("durability", format::DurabilityName(static_cast<format::Durability>(hello.durability)));
    info.emplace_back("durability_means", format::DurabilityMeaning(static_cast<format::Durability>(hello.durability)));
    info.emplace_back("flush_method", format::FlushMethodName(links[0]->flush_method()));
    info.emplace_back("placing", format::PlacingName(links[0]->placing()));
    number("pool_bytes", hello.geometry.pool_size);
    number("shards", hello.geometry.shards);
    number("heads_per_shard", hello.geometry.heads_per_shard);
    number("region_bytes", hello.geometry.region_size);
    number("segment_bytes", hello.geometry.segment_size);
    number("inline_request_bytes", hello.slot_bytes);
    for (uint32_t i = 0; i < static_cast<uint32_t>(format::Counter::kCount); ++i) {
      uint64_t sum = 0;
      for (const auto& link : links) {
        const uint64_t at = offsetof(format::ControlBlock, counters) + i * sizeof(uint64_t);
        sum += LoadAs<uint64_t>(link->control().subspan(at));
      }
      number(format::kCounterNames[i], sum);
    }
    AddActivityTo(info, ActivityRead());
    return info;
  }

 private:
  template <class R, class Body>
  static R OrNoMemory(Body& body) try {
    return body();
  } catch (const std::bad_alloc&) {
    return R(Status(Code::kResourceExhausted));
  }

  client::Turns turns_;
  std::unique_ptr<Engine> engine_;
  const Polling polling_;
  const std::chrono::milliseconds timeout_;
  client::Looks looks_;
  uint64_t sleeps_ = 0;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Nothing of it can be ended in a child of a fork, or after two threads broke it: it stays in memory then.
Client::~Client() {
  using Misuse = client::Turns::Misuse;
  const Misuse misuse = impl_->turns().Find();
  if (misuse == Misuse::kNone) return;
  if (misuse == Misuse::kForked || misuse == Misuse::kOverlapped) {
    (void)impl_.release();
    return;
  }
  // The call that is under way would go on in freed memory, and no status can tell the caller.
  impl_->turns().Complain("a Client is destroyed in a call of it");
  std::abort();
}

Result<std::unique_ptr<Client>> Client::Connect(std::string_view address, ClientOptions options) try {
  if (auto status = CheckOptions(options); !status.ok()) return status;
  auto fabric = fabric::OpenFabric(address, fabric::Role::kConnect);
  if (!fabric.ok()) return fabric.status();
  EngineOptions engine_options;
  engine_options.ack = options.ack;
  engine_options.put_path = options.put_path;
  engine_options.queue_depth = options.queue_depth;
  engine_options.cache_entries = options.cache_entries;
  engine_options.timeout = options.timeout;
  engine_options.client_id = RandomId();
  if (!options.token.empty()) {
    engine_options.token = [token = std::move(options.token)]() -> Result<std::string> { return token; };
  } else if (!options.token_file.empty()) {
    engine_options.token = [path = std::move(options.token_file)]() -> Result<std::string> {
      auto tokens = ReadTokenFile(path);
      return tokens.ok() ? Result<std::string>(std::move(tokens->front().secret)) : tokens.status();
    };
  }
  auto engine = Engine::Create(*std::move(fabric), std::string(address), engine_options, SteadyClock::Instance());
  if (!engine.ok()) return engine.status();
  auto impl = std::make_unique<Impl>(*std::move(engine), options.polling, options.timeout);
  if (!Birthplace::watched()) return Status(Code::kResourceExhausted, Birthplace::kUnwatched);
  if (auto status = impl->Connect(); !status.ok()) return status;
  return std::unique_ptr<Client>(new Client(std::move(impl)));
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

// --- Buffers

Buffer::Buffer(std::shared_ptr<Memory> memory) : memory_(std::move(memory)), bytes_(memory_->value) {}
Buffer::Buffer(Buffer&& other) noexcept
    : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, std::span<std::byte>())) {}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  memory_ = std::move(other.memory_);
  bytes_ = std::exchange(other.bytes_, std::span<std::byte>());
  return *this;
}
Buffer::~Buffer() = default;

// --- Synchronous calls

Result<std::string> Client::Get(std::string_view key) {
  return impl_->Call<Result<std::string>>([&]() -> Result<std::string> {
    std::string copy;
    auto take = [&](std::string_view value) { return Copied([&] { copy.assign(value); }); };
    auto status = impl_->RunGet(take, key);
    if (!status.ok()) return status;
    return copy;
  });
}

Result<size_t> Client::Get(std::string_view key, std::span<std::byte> out) {
  return impl_->Call<Result<size_t>>([&]() -> Result<size_t> {
    size_t size = 0;
    auto take = [&](std::string_view value) {
      if (value.size() > out.size()) {
        return Status(Code::kInvalidArgument, "the value has " + std::to_string(value.size()) +
                                                  " bytes, and the buffer only " + std::to_string(out.size()));
      }
      std::copy_n(AsBytes(value).begin(), value.size(), out.begin());
      size = value.size();
      return Status();
    };
    auto status = impl_->RunGet(take, key);
    if (!status.ok()) return status;
    return size;
  });
}

Status Client::Put(std::string_view key, std::string_view value) {
  return impl_->Call<Status>([&]() -> Status {
    return impl_->Run([&](auto done) { return impl_->engine().Put(key, value, std::move(done)); });
  });
}

Result<Versioned> Client::GetVersioned(std::string_view key) {
  return impl_->Call<Result<Versioned>>([&]() -> Result<Versioned> {
    Versioned copy;
    auto take = [&](const VersionedView& got) {
      copy.version = got.version;
      copy.expires = got.expires;
      return Copied([&] { copy.value.assign(got.value); });
    };
    auto status = impl_->RunGetVersioned(take, key);
    if (!status.ok()) return status;
    return copy;
  });
}

Result<uint64_t> Client::Put(std::string_view key, std::string_view value, const PutOptions& options) {
  return impl_->Call<Result<uint64_t>>([&]() -> Result<uint64_t> {
    return impl_->RunFor<uint64_t>(
        [&](auto&& done) { return impl_->engine().Put(key, value, options, std::forward<decltype(done)>(done)); });
  });
}

Status Client::Delete(std::string_view key, const DeleteOptions& options) {
  return impl_->Call<Status>([&]() -> Status {
    return impl_->Run([&](auto done) { return impl_->engine().Delete(key, options, std::move(done)); });
  });
}

Result<int64_t> Client::Increment(std::string_view key, int64_t delta) {
  return impl_->Call<Result<int64_t>>([&]() -> Result<int64_t> {
    return impl_->RunFor<int64_t>(
        [&](auto&& done) { return impl_->engine().Increment(key, delta, std::forward<decltype(done)>(done)); });
  });
}

Result<Buffer> Client::MakeBuffer(size_t value_bytes) {
  return impl_->Call<Result<Buffer>>([&]() -> Result<Buffer> {
    auto memory = impl_->engine().MakeBuffer(value_bytes);
    if (!memory.ok()) return memory.status();
    return Buffer(*std::move(memory));
  });
}

Result<size_t> Client::Get(std::string_view key, Buffer& into) {
  return impl_->Call<Result<size_t>>([&]() -> Result<size_t> {
    size_t size = 0;
    auto take = [&](std::string_view value) {
      size = value.size();
      return Status();
    };
    auto status = impl_->RunGetOperation(take, key, into.memory_);
    if (!status.ok()) return status;
    return size;
  });
}

Status Client::Put(std::string_view key, Buffer& from, size_t size) {
  return impl_->Call<Status>([&]() -> Status {
    return impl_->Run([&](auto done) { return impl_->engine().Put(key, from.memory_, size, std::move(done)); });
  });
}

Result<uint64_t> Client::Put(std::string_view key, Buffer& from, size_t size, const PutOptions& options) {
  return impl_->Call<Result<uint64_t>>([&]() -> Result<uint64_t> {
    return impl_->RunFor<uint64_t>([&](auto&& done) {
      return impl_->engine().Put(key, from.memory_, size, options, std::forward<decltype(done)>(done));
    });
  });
}

Status Client::Delete(std::string_view key) {
  return impl_->Call<Status>(
      [&]() -> Status { return impl_->Run([&](auto done) { return impl_->engine().Delete(key, std::move(done)); }); });
}

Status Client::Clean() {
  return impl_->Call<Status>([&]() -> Status {
    if (auto status = impl_->Connect(); !status.ok()) return status;
    Status first;
    for (uint32_t shard = 0; shard < impl_->engine().links().size(); ++shard) {
      auto status = impl_->Run([&](auto done) { return impl_->engine().Clean(shard, std::move(done)); });
      if (first.ok()) first = std::move(status);
    }
    return first;
  });
}

// --- Asynchronous calls

Status Client::GetAsync(std::string_view key, GetCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Get(key, std::move(done)); });
}
Status Client::PutAsync(std::string_view key, std::string_view value, DoneCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Put(key, value, std::move(done)); });
}
Status Client::DeleteAsync(std::string_view key, DoneCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Delete(key, std::move(done)); });
}
Status Client::GetAsync(std::string_view key, Buffer& into, GetCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Get(key, into.memory_, std::move(done)); });
}
Status Client::PutAsync(std::string_view key, Buffer& from, size_t size, DoneCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Put(key, from.memory_, size, std::move(done)); });
}
Status Client::GetVersionedAsync(std::string_view key, GetVersionedCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().GetVersioned(key, std::move(done)); });
}
Status Client::PutAsync(std::string_view key, std::string_view value, const PutOptions& options, PutCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Put(key, value, options, std::move(done)); });
}
Status Client::PutAsync(std::string_view key, Buffer& from, size_t size, const PutOptions& options, PutCallback done) {
  return impl_->Start(
      [&]() -> Status { return impl_->engine().Put(key, from.memory_, size, options, std::move(done)); });
}
Status Client::DeleteAsync(std::string_view key, const DeleteOptions& options, DoneCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Delete(key, options, std::move(done)); });
}
Status Client::IncrementAsync(std::string_view key, int64_t delta, IncrementCallback done) {
  return impl_->Start([&]() -> Status { return impl_->engine().Increment(key, delta, std::move(done)); });
}
size_t Client::Poll() {
  size_t finished = 0;
  if (!Access::Poll(*this, &finished).ok()) impl_->turns().Complain("Client::Poll");
  return finished;
}
Status Client::Access::Poll(Client& client, size_t* finished) {
  return client.impl_->Call<Status>([&] {
    *finished = client.impl_->engine().Poll();
    return Status();
  });
}
Status Client::Drain() {
  return impl_->Call<Status>([&]() -> Status {
    impl_->WaitFor([&] { return impl_->engine().in_flight() == 0; });
    return {};
  });
}

std::vector<Result<std::string>> Client::MultiGet(std::span<const std::string_view> keys) {
  return impl_->GetAll<std::string, std::string_view>(
      keys, [&](size_t i, GetCallback&& done) { return impl_->engine().Get(keys[i], std::move(done)); });
}

std::vector<Result<Versioned>> Client::MultiGetVersioned(std::span<const std::string_view> keys) {
  return impl_->GetAll<Versioned, VersionedView>(keys, [&](size_t i, GetVersionedCallback&& done) {
    return impl_->engine().GetVersioned(keys[i], std::move(done));
  });
}

Result<ScanPage> Client::Scan(const ScanOptions& options) {
  return impl_->Call<Result<ScanPage>>([&]() -> Result<ScanPage> {
    if (auto status = impl_->Connect(); !status.ok()) return status;
    client::Scan scan(impl_->engine(), options);
    impl_->WaitFor([&] { return scan.GoOn(); });
    return scan.Take();
  });
}

ClientStats Client::stats() const { return impl_->Stats(); }

Result<std::vector<std::pair<std::string, std::string>>> Client::ServerInfo() {
  return impl_->Call<Result<std::vector<std::pair<std::string, std::string>>>>(
      [&]() -> Result<std::vector<std::pair<std::string, std::string>>> {
        if (auto status = impl_->ReadControls(); !status.ok()) return status;
        return impl_->Info();
      });
}

Result<Activity> Client::ServerActivity() {
  return impl_->Call<Result<Activity>>([&]() -> Result<Activity> {
    if (auto status = impl_->ReadControls(); !status.ok()) return status;
    return impl_->ActivityRead();
  });
}

size_t Client::max_value_bytes(size_t key_bytes) const { return impl_->engine().ValueBytesMax(key_bytes); }

}  // namespace erda
