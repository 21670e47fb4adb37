// The client's public calls. Each one checks its turn, and runs an asynchronous call of the engine.
#include "erda/client.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/bytes.h"
#include "client/access.h"
#include "client/client_options.h"
#include "client/engine.h"
#include "client/scan.h"
#include "client/server_info.h"
#include "client/turn.h"
#include "client/waiter.h"

namespace erda {

using client::Engine;

namespace {

// Copies a value for the caller. Returns kResourceExhausted if there is no memory for it; that status needs no memory.
template <class Copy>
Status Copied(Copy&& copy) try {
  copy();
  return {};
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

[[gnu::cold]] Status TooLong(size_t value_bytes, size_t buffer_bytes) {
  return {Code::kInvalidArgument, "the value has " + std::to_string(value_bytes) + " bytes, and the buffer only " +
                                      std::to_string(buffer_bytes)};
}

Result<std::string> CopyOf(std::string_view value) { return std::string(value); }
Result<Versioned> CopyOf(const VersionedView& got) {
  return Versioned{std::string(got.value), got.version, got.expires};
}

}  // namespace

class Client::Impl {
 public:
  Impl(std::unique_ptr<Engine> engine, Polling polling, std::chrono::milliseconds timeout, bool wait_for_room)
      : engine_(std::move(engine)), waiter_(*engine_, polling), timeout_(timeout), wait_for_room_(wait_for_room) {}

  Engine& engine() { return *engine_; }
  client::Turns& turns() { return turns_; }
  client::Waiter& waiter() { return waiter_; }

  // Runs one call of the caller, which returns an R. If it finds no memory, the R is kResourceExhausted.
  template <class R, class Body>
  R Call(Body&& body) {
    const client::Turn turn(turns_);
    return turn.is_mine() ? OrNoMemory<R>(body) : R(turns_.Refusal());
  }
  // Runs one call that starts an operation. A callback may make such a call.
  template <class Body>
  Status Start(Body&& body) {
    const client::NestedTurn turn(turns_);
    if (!turn.is_mine()) return turns_.Refusal();
    const auto start = [&] {
      if (wait_for_room_ && !turn.is_nested()) MakeRoom();
      return body();
    };
    return OrNoMemory<Status>(start);
  }
  std::chrono::milliseconds Arm() {
    if (std::exchange(armed_, true)) engine_->Disarm();
    return std::chrono::ceil<std::chrono::milliseconds>(engine_->Arm());
  }
  // Waits until that number of operations have finished, none is in flight, or the time has passed.
  size_t Wait(Nanoseconds timeout, size_t at_least) {
    constexpr Nanoseconds kLongest = std::chrono::hours(24 * 365);
    const Nanoseconds end = SteadyClock::Instance().Now() + std::clamp(timeout, Nanoseconds(0), kLongest);
    const uint64_t before = waiter_.finished();
    const auto left = [&] { return end - SteadyClock::Instance().Now(); };
    bool polled = false;
    waiter_.WaitUntil(
        [&] {
          if (!std::exchange(polled, true)) return false;
          return waiter_.finished() - before >= at_least || engine_->in_flight() == 0 || left() <= Nanoseconds(0);
        },
        left);
    return waiter_.finished() - before;
  }

  // Polls for the caller, and ends the effect of Arm. Returns kInvalidArgument if the call is refused, and
  // kResourceExhausted if a callback finds no memory. Inlined, since most Polls find nothing.
  [[gnu::always_inline]] Code Poll(size_t* finished) try {
    const client::Turn turn(turns_);
    if (!turn.is_mine()) return Code::kInvalidArgument;
    if (armed_) [[unlikely]] {
      armed_ = false;
      engine_->Disarm();
    }
    *finished = engine_->Poll();
    return Code::kOk;
  } catch (const std::bad_alloc&) {
    return Code::kResourceExhausted;
  }

  [[nodiscard]] ClientStats Stats() const {
    ClientStats stats = engine_->stats();
    stats.sleeps = waiter_.sleeps();
    return stats;
  }

  Status Connect() {
    const Nanoseconds deadline = SteadyClock::Instance().Now() + timeout_;
    for (;;) {
      auto up = engine_->connections().Connect();
      if (!up.ok()) return up.status();
      if (*up) return {};
      engine_->Poll();
      if (auto status = engine_->connections().TakeConnectError(); !status.ok()) return status;
      if (SteadyClock::Instance().Now() > deadline) {
        return {Code::kTimeout,
                engine_->connections().address() + ": no answer in " + std::to_string(timeout_.count()) + " ms"};
      }
      engine_->Wait(std::chrono::milliseconds(1));
    }
  }

  // Runs one asynchronous call to its end. Its callback gets a status.
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
    waiter_.WaitFor([&] { return finished; });
    return result;
  }

  // Runs one asynchronous call to its end. Its callback gets a result.
  template <class T, class Start>
  Result<T> RunFor(Start&& start) {
    MakeRoom();
    std::optional<Result<T>> result;
    Status started = start([&](Result<T> r) { result = std::move(r); });
    if (!started.ok()) return started;
    waiter_.WaitFor([&] { return result.has_value(); });
    return *std::move(result);
  }

  // Runs a get. `take` gets the value, which is valid during that call only.
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
      // This comes first: even if `take` throws, the operation has ended, and the call must not wait for it.
      state.finished = true;
      const Status copied = Copied([&] { state.status = got.ok() ? state.take(*got) : got.status(); });
      if (!copied.ok()) state.status = Status(Code::kResourceExhausted);
    });
    if (!started.ok()) return started;
    waiter_.WaitFor([&] { return state.finished; });
    return std::move(state.status);
  }

  // Runs a get for each key. Returns the results in the order of the keys.
  template <class T, class View, class Start>
  std::vector<Result<T>> GetAll(std::span<const std::string_view> keys, Start&& start) {
    struct State {
      std::vector<Result<T>> results;
      size_t finished = 0;
    } state;
    // The callbacks use this call's state. So after the first start the call must not return or throw before all gets
    // have finished.
    const Status has_room = Copied([&] { state.results.resize(keys.size(), Status(Code::kResourceExhausted)); });
    if (!has_room.ok()) return {};
    const client::Turn turn(turns_);
    if (!turn.is_mine()) {
      for (Result<T>& result : state.results) result = turns_.Refusal();
      return std::move(state.results);
    }
    std::exception_ptr thrown;  // By a callback of the caller, for another operation.
    for (size_t i = 0; i < keys.size(); ++i) {
      Status status;
      try {
        MakeRoom();
      } catch (...) {
        thrown = std::current_exception();  // There is room: Poll throws after all other work.
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
    waiter_.WaitFor([&] { return state.finished == keys.size(); });
    if (thrown) std::rethrow_exception(thrown);
    return std::move(state.results);
  }

  // Waits until there is room for one more operation. Asynchronous calls may have filled the queue.
  void MakeRoom() {
    const auto has_room = [&] { return engine_->in_flight() < engine_->queue_depth(); };
    if (!has_room()) waiter_.WaitFor(has_room);
  }

  Status ReadControls() {
    if (auto status = Connect(); !status.ok()) return status;
    const auto are_read = [&] { return engine_->connections().ControlsRead(); };
    waiter_.WaitFor(are_read);
    if (auto status = engine_->connections().BeginReadControls(); !status.ok()) return status;
    waiter_.WaitFor(are_read);
    // The control blocks do not count if a connection ended meanwhile.
    auto up = engine_->connections().Connect();
    if (!up.ok()) return up.status();
    return *up ? Status() : Status(Code::kUnavailable, engine_->connections().address() + ": the connection was lost");
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
  client::Waiter waiter_;
  const std::chrono::milliseconds timeout_;
  const bool wait_for_room_;
  bool armed_ = false;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// In a child of a fork, and after two threads used the client at once, nothing of it can be ended safely. Then it stays
// in memory.
Client::~Client() {
  using Misuse = client::Turns::Misuse;
  const Misuse misuse = impl_->turns().Find();
  if (misuse == Misuse::kNone) return;
  if (misuse == Misuse::kForked || misuse == Misuse::kOverlapped) {
    (void)impl_.release();
    return;
  }
  // A call of this client is under way. It would go on in freed memory, and no status can tell the caller.
  impl_->turns().Complain("a Client is destroyed in a call of it");
  std::abort();
}

Result<std::unique_ptr<Client>> Client::Connect(std::string_view address, ClientOptions options) try {
  if (auto status = client::CheckOptions(options); !status.ok()) return status;
  auto fabric = fabric::OpenFabric(address, fabric::Role::kConnect);
  if (!fabric.ok()) return fabric.status();
  const auto polling = options.polling;
  const auto timeout = options.timeout;
  const bool wait_for_room = options.wait_for_room;
  auto engine = Engine::Create(*std::move(fabric), std::string(address), client::EngineOptionsOf(std::move(options)),
                               SteadyClock::Instance());
  if (!engine.ok()) return engine.status();
  auto impl = std::make_unique<Impl>(*std::move(engine), polling, timeout, wait_for_room);
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
      if (value.size() > out.size()) return TooLong(value.size(), out.size());
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
    for (uint32_t shard = 0; shard < impl_->engine().connections().links().size(); ++shard) {
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
  if (impl_->Poll(&finished) != Code::kOk) impl_->turns().Complain("Client::Poll");
  return finished;
}
Status Client::Access::Poll(Client& client, size_t* finished) {
  const Code code = client.impl_->Poll(finished);
  return code == Code::kInvalidArgument ? client.impl_->turns().Refusal() : Status(code);
}
Result<size_t> Client::Wait(std::chrono::nanoseconds timeout, size_t at_least) {
  return impl_->Call<Result<size_t>>([&]() -> Result<size_t> { return impl_->Wait(timeout, at_least); });
}
int Client::descriptor() const { return impl_->engine().descriptor(); }
Result<std::chrono::milliseconds> Client::Arm() {
  return impl_->Call<Result<std::chrono::milliseconds>>(
      [&]() -> Result<std::chrono::milliseconds> { return impl_->Arm(); });
}
Status Client::Drain() {
  return impl_->Call<Status>([&]() -> Status {
    impl_->waiter().WaitFor([&] { return impl_->engine().in_flight() == 0; });
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
    impl_->waiter().WaitFor([&] { return scan.GoOn(); });
    return scan.Take();
  });
}

ClientStats Client::stats() const { return impl_->Stats(); }

Result<std::vector<std::pair<std::string, std::string>>> Client::ServerInfo() {
  return impl_->Call<Result<std::vector<std::pair<std::string, std::string>>>>(
      [&]() -> Result<std::vector<std::pair<std::string, std::string>>> {
        if (auto status = impl_->ReadControls(); !status.ok()) return status;
        return client::ServerInfoOf(impl_->engine().connections());
      });
}

Result<Activity> Client::ServerActivity() {
  return impl_->Call<Result<Activity>>([&]() -> Result<Activity> {
    if (auto status = impl_->ReadControls(); !status.ok()) return status;
    return client::ActivityOf(impl_->engine().connections());
  });
}

size_t Client::max_value_bytes(size_t key_bytes) const {
  return impl_->engine().connections().pool().ValueBytesMax(key_bytes);
}

}  // namespace erda
