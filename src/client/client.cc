// The client's public calls. Each one checks its turn, and runs an asynchronous call of the engine.
#include "erda/client.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/birthplace.h"
#include "base/bytes.h"
#include "client/access.h"
#include "client/client_impl.h"
#include "client/client_options.h"
#include "client/engine.h"
#include "client/scan.h"
#include "client/server_info.h"

namespace erda {

using client::Engine;

namespace {

[[gnu::cold]] Status TooLong(size_t value_bytes, size_t buffer_bytes) {
  return {Code::kInvalidArgument, "the value has " + std::to_string(value_bytes) + " bytes, and the buffer only " +
                                      std::to_string(buffer_bytes)};
}

}  // namespace

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
    auto take = [&](std::string_view value) { return client::Copied([&] { copy.assign(value); }); };
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
      return client::Copied([&] { copy.value.assign(got.value); });
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
int Client::descriptor() const { return impl_->engine().event_loop().descriptor(); }
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
  return impl_->RunAll<std::string, std::string_view>(
      keys.size(), [&](size_t i, GetCallback&& done) { return impl_->engine().Get(keys[i], std::move(done)); });
}

std::vector<Result<Versioned>> Client::MultiGetVersioned(std::span<const std::string_view> keys) {
  return impl_->RunAll<Versioned, VersionedView>(keys.size(), [&](size_t i, GetVersionedCallback&& done) {
    return impl_->engine().GetVersioned(keys[i], std::move(done));
  });
}

std::vector<Result<uint64_t>> Client::MultiPut(std::span<const KeyValue> puts) {
  return impl_->RunAll<uint64_t, uint64_t>(puts.size(), [&](size_t i, PutCallback&& done) {
    return impl_->engine().Put(puts[i].key, puts[i].value, puts[i].options, std::move(done));
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
