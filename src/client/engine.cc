#include "client/engine.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"

namespace erda::client {

namespace {

template <class Callback>
void BeginPut(EventLoop& loop, PutOp& op, Callback& done) {
  op.done.Take(done);
  loop.Begin(op);
}

// These take an operation, and begin it: with a value, with the value in a buffer, and without a value.

template <class Callback>
Status PutOf(PutTaker& taker, EventLoop& loop, PutKind kind, std::string_view key, std::string_view value,
             const PutOptions& options, Callback& done) {
  Status why;
  if (PutOp* op = taker.Take(kind, key, value, options, &why)) BeginPut(loop, *op, done);
  return why;
}

template <class Callback>
Status PutFrom(PutTaker& taker, EventLoop& loop, std::string_view key, const std::shared_ptr<Buffer::Memory>& from,
               size_t size, const PutOptions& options, Callback& done) {
  Status why;
  if (PutOp* op = taker.TakeFrom(key, from, size, options, &why)) BeginPut(loop, *op, done);
  return why;
}

template <class Callback>
Status PutKey(PutTaker& taker, EventLoop& loop, PutKind kind, std::string_view key, std::optional<uint64_t> if_version,
              Callback& done) {
  Status why;
  if (PutOp* op = taker.TakeKey(kind, key, if_version, &why)) BeginPut(loop, *op, done);
  return why;
}

}  // namespace

// --- Setting up

Result<std::unique_ptr<Engine>> Engine::Create(std::shared_ptr<fabric::Fabric> fabric, std::string address,
                                               const EngineOptions& options, const Clock& clock) {
  std::unique_ptr<Engine> engine(new Engine(std::move(fabric), std::move(address), options, clock));
  if (auto status = engine->Prepare(); !status.ok()) return status;
  return engine;
}

Engine::Engine(std::shared_ptr<fabric::Fabric> fabric, std::string address, const EngineOptions& options,
               const Clock& clock)
    : fabric_(std::move(fabric)),
      options_(options),
      connections_(*fabric_, std::move(address), options_, clock, operations_, stats_),
      posting_(operations_, connections_, stats_),
      own_requests_(operations_, connections_, posting_, clock, stats_),
      kinds_(operations_, connections_, posting_, own_requests_, options_, fabric_->capabilities().reads_in_order,
             clock, stats_),
      event_loop_(operations_, connections_, posting_, own_requests_, kinds_, options_, clock) {}

// The channels go first: until then they may use the memory of operations in flight. `kinds_` owns such memory, and its
// destructor runs before that of `connections_`.
Engine::~Engine() { connections_.Drop(); }

Status Engine::Prepare() {
  if (auto status = operations_.Prepare(*fabric_, options_.queue_depth); !status.ok()) return status;
  kinds_.Prepare();
  posting_.Prepare();
  return connections_.Prepare();
}

// --- Beginning operations on keys

template <class Op, class Callback>
Status Engine::Begin(Op& op, Callback&& done) {
  op.done.template emplace<std::remove_cvref_t<Callback>>(std::forward<Callback>(done));
  event_loop_.Begin(op);
  return {};
}

Status Engine::Get(std::string_view key, Client::GetCallback&& done) {
  GetOp* op = kinds_.gets.Take(key);
  return op == nullptr ? operations_.Refusal(key) : Begin(*op, std::move(done));
}

Status Engine::GetVersioned(std::string_view key, Client::GetVersionedCallback&& done) {
  GetOp* op = kinds_.gets.Take(key);
  return op == nullptr ? operations_.Refusal(key) : Begin(*op, std::move(done));
}

Status Engine::Get(std::string_view key, const std::shared_ptr<Buffer::Memory>& into, Client::GetCallback&& done) {
  if (auto status = CheckBuffer(into, *fabric_); !status.ok()) return status;
  GetOp* op = kinds_.gets.Take(key);
  if (op == nullptr) return operations_.Refusal(key);
  op->UseBuffer(into, format::ValueOffset(key.size()));
  return Begin(*op, std::move(done));
}

Status Engine::Put(std::string_view key, std::string_view value, Client::DoneCallback&& done) {
  return PutOf(TakerOfValues(), event_loop_, PutKind::kPut, key, value, {}, done);
}

Status Engine::Put(std::string_view key, std::string_view value, const PutOptions& options,
                   Client::PutCallback&& done) {
  return PutOf(TakerOfValues(), event_loop_, PutKind::kPut, key, value, options, done);
}

Status Engine::Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                   Client::DoneCallback&& done) {
  if (auto status = CheckBuffer(from, *fabric_); !status.ok()) return status;
  return PutFrom(TakerOfValues(), event_loop_, key, from, size, {}, done);
}

Status Engine::Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
                   const PutOptions& options, Client::PutCallback&& done) {
  if (auto status = CheckBuffer(from, *fabric_); !status.ok()) return status;
  return PutFrom(TakerOfValues(), event_loop_, key, from, size, options, done);
}

Status Engine::Increment(std::string_view key, int64_t delta, Client::IncrementCallback&& done) {
  return PutOf(TakerOfValues(), event_loop_, PutKind::kIncrement, key, AsString(BytesOf(delta)), {}, done);
}

Status Engine::Delete(std::string_view key, const DeleteOptions& options, Client::DoneCallback&& done) {
  return PutKey(kinds_.puts.taker(), event_loop_, PutKind::kDelete, key, options.if_version, done);
}

// Uses any hash of the shard: the request needs one only to find the shard.
Status Engine::Clean(uint32_t shard, Client::DoneCallback&& done) {
  const KnownPool& pool = connections_.pool();
  std::string key;
  for (uint32_t i = 0; key.empty() || pool.geometry.ShardOf(HashKey(key, pool.hash_seed)) != shard; ++i) {
    key = "clean" + std::to_string(i);
  }
  return PutKey(kinds_.puts.taker(), event_loop_, PutKind::kClean, key, std::nullopt, done);
}

Result<std::shared_ptr<Buffer::Memory>> Engine::MakeBuffer(size_t value_bytes) {
  return client::MakeBuffer(fabric_, value_bytes);
}

// --- Beginning operations of a scan, which have no key and no order

Status Engine::ReadBlock(uint32_t shard, uint32_t hash_low, BlockCallback&& done) {
  if (!operations_.HasRoom()) return operations_.NoRoom();
  BlockOp& op = kinds_.blocks.Take(shard, hash_low);
  op.done.swap(done);
  event_loop_.Run(op);
  return {};
}

Status Engine::GetEntry(const FoundEntry& found, bool with_value, EntryCallback&& done) {
  if (!operations_.HasRoom()) return operations_.NoRoom();
  GetOp& op = kinds_.gets.TakeEntry(found, with_value);
  op.done.emplace<EntryCallback>(std::move(done));
  event_loop_.Run(op);
  return {};
}

}  // namespace erda::client
