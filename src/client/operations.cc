// How operations are taken, one after the other for each key, and how they end.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/option_bounds.h"
#include "client/engine.h"

namespace erda::client {

static_assert(kTtlBounds.most == kTtlMax.count());

// --- Taking an operation

bool Engine::HasChunks() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->delegated.active(); });
}

Status Engine::Refusal(std::string_view key) const {
  if (key.empty() || key.size() > format::kKeyBytesMax) {
    return {Code::kInvalidArgument,
            "a key has 1 to " + std::to_string(format::kKeyBytesMax) + " bytes, not " + std::to_string(key.size())};
  }
  return {Code::kResourceExhausted,
          "queue_depth, " + std::to_string(options_.queue_depth) + ", operations are in flight"};
}

Operation* Engine::NewOperation(OpType type, std::string_view key) {
  if (key.empty() || key.size() > format::kKeyBytesMax || in_flight_ == options_.queue_depth) return nullptr;
  Operation& op = TakeOperation(type);
  op.key_hash = HashKey(key, hash_seed_);
  op.key_size = static_cast<uint16_t>(key.size());
  std::memcpy(op.key.data(), key.data(), key.size());
  return &op;
}

Operation& Engine::TakeOperation(OpType type) {
  Operation& op = ops_[free_ops_.back()];
  free_ops_.pop_back();
  ++in_flight_;
  op.type = type;
  op.shard = Operation::kByKey;
  op.key_size = 0;
  op.nameless = false;
  op.label_only = false;
  op.in_order = false;
  op.deadline = Nanoseconds(0);
  op.link = nullptr;
  op.slot = Link::kNoSlot;
  op.sending = 0;
  op.doomed = false;
  op.way = PutWay::kUndecided;
  op.lost_chunk = false;
  op.staged = Operation::kNotStaged;
  op.if_version.reset();
  op.ttl = 0;
  return op;
}

template <class Callback>
Status Engine::BeginGet(std::string_view key, Callback Operation::*member, Callback&& done) {
  Operation* op = NewOperation(OpType::kGet, key);
  if (op == nullptr) return Refusal(key);
  (op->*member).swap(done);
  Begin(*op);
  return {};
}

Status Engine::Get(std::string_view key, Client::GetCallback&& done) {
  return BeginGet(key, &Operation::get_done, std::move(done));
}

Status Engine::GetVersioned(std::string_view key, Client::GetVersionedCallback&& done) {
  return BeginGet(key, &Operation::get_versioned_done, std::move(done));
}

Result<Operation*> Engine::NewPut(OpType type, std::string_view key, size_t value_size, const PutOptions& options) {
  if (options.ttl) {
    Bounds bounds;
    bounds.Check(kTtlBounds, options.ttl->count());
    if (!bounds.status().ok()) return bounds.status();
  }
  // (The geometry may not be known, and a request has 32 bits for the size.)
  if (value_size > UINT32_MAX) return Status(Code::kInvalidArgument, "no pool takes a value of 4 GiB or more");
  if (geometry_known_ && !key.empty() && key.size() <= format::kKeyBytesMax) {
    const uint64_t most = format::ValueBytesMax(geometry_, key.size(), options.ttl.has_value());
    if (value_size > most) {
      return Status(Code::kInvalidArgument, "a value for a key of " + std::to_string(key.size()) +
                                                " bytes has at most " + std::to_string(most) +
                                                " bytes in this pool, not " + std::to_string(value_size));
    }
  }
  // Who was idle may have been told meanwhile that a chunk was taken back.
  if (in_flight_ == 0 && HasChunks()) Poll();
  Operation* op = NewOperation(type, key);
  if (op == nullptr) return Refusal(key);
  op->value_size = static_cast<uint32_t>(value_size);
  op->if_version = options.if_version;
  op->ttl = options.ttl ? static_cast<uint64_t>(options.ttl->count()) : 0;
  return op;
}

template <class Callback>
Status Engine::BeginPut(OpType type, std::string_view key, std::string_view value, const PutOptions& options,
                        Callback Operation::*member, Callback&& done) {
  auto taken = NewPut(type, key, value.size(), options);
  if (!taken.ok()) return taken.status();
  Operation& op = **taken;
  (op.*member).swap(done);
  // Laid out once, for the request and for the log: request, key, checksum, value.
  const uint64_t value_at = format::InlineValueOffset(key.size());
  if (auto status = ProvideMessageMemory(op, value_at + value.size()); !status.ok()) {
    Free(op);
    --in_flight_;
    return status;
  }
  std::byte* message = op.message().data();
  std::memcpy(message + sizeof(format::Request), key.data(), key.size());
  std::memcpy(message + value_at, value.data(), value.size());
  Begin(op);
  return {};
}

Status Engine::Put(std::string_view key, std::string_view value, Client::DoneCallback&& done) {
  return BeginPut(OpType::kPut, key, value, {}, &Operation::done, std::move(done));
}

Status Engine::Put(std::string_view key, std::string_view value, const PutOptions& options,
                   Client::PutCallback&& done) {
  return BeginPut(OpType::kPut, key, value, options, &Operation::put_done, std::move(done));
}

Status Engine::Increment(std::string_view key, int64_t delta, Client::IncrementCallback&& done) {
  const std::string_view bytes = AsString(BytesOf(delta));
  return BeginPut(OpType::kIncrement, key, bytes, {}, &Operation::increment_done, std::move(done));
}

Status Engine::Delete(std::string_view key, Client::DoneCallback&& done) {
  return StartWithKey(OpType::kDelete, key, std::nullopt, std::move(done));
}

Status Engine::Delete(std::string_view key, const DeleteOptions& options, Client::DoneCallback&& done) {
  return StartWithKey(OpType::kDelete, key, options.if_version, std::move(done));
}

// Any key of the shard will do: it only shows the way.
Status Engine::Clean(uint32_t shard, Client::DoneCallback&& done) {
  std::string key;
  for (uint32_t i = 0; key.empty() || geometry_.ShardOf(HashKey(key, hash_seed_)) != shard; ++i) {
    key = "clean" + std::to_string(i);
  }
  return StartWithKey(OpType::kClean, key, std::nullopt, std::move(done));
}

Status Engine::StartWithKey(OpType type, std::string_view key, std::optional<uint64_t> if_version,
                            Client::DoneCallback&& done) {
  Operation* op = NewOperation(type, key);
  if (op == nullptr) return Refusal(key);
  op->done.swap(done);
  op->if_version = if_version;
  op->value_size = 0;
  std::memcpy(op->message().data() + sizeof(format::Request), key.data(), key.size());
  Begin(*op);
  return {};
}

Status Engine::ProvideLargeMemory(Operation& op, uint64_t bytes) try {
  if (!op.in_buffer.empty()) {
    op.in_buffer = {};
    return ProvideMessageMemory(op, bytes);
  }
  auto large = RegisteredMemory::Make(*fabric_, bytes);
  if (!large.ok()) return large.status();
  op.large = std::make_unique<RegisteredMemory>(*std::move(large));
  return {};
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

void Engine::Begin(Operation& op) {
  const bool waits = key_order_.Join(std::span(ops_), op);
  op.step = waits ? Step::kKeyTurn : Step::kFree;
  if (!waits) Run(op);
}

// Its turn has come. Without memory for its step it waits, as one that is on its way: EndAll ends it with the others.
void Engine::Run(Operation& op) {
  op.link = links_[ShardOf(op)].get();
  try {
    BeginSteps(op);
  } catch (const std::bad_alloc&) {
    if (!op.waits_for_link() && op.step != Step::kDone) op.step = Step::kLinkUp;
    out_of_memory_ = true;
  }
}

// On its way, or to the connection first.
void Engine::BeginSteps(Operation& op) {
  // Who was idle may have lost its connection. Nothing is under way: it connects anew, and nobody notices.
  const bool lost = in_flight_ == 1 && !polling_ && op.link->up() && op.link->channel()->lost();
  if (lost) CloseLink(*op.link, {Code::kUnavailable, address_ + ": the server closed the connection"});
  if (!op.link->up()) {
    op.step = Step::kLinkUp;
    op.link->waiting_for_link.push_back(op.index);
    if (auto status = EnsureConnecting(*op.link); !status.ok()) CloseLink(*op.link, status);
    return;
  }
  if (op.type == OpType::kBlock) return StartBlock(op);
  if (op.type != OpType::kGet) return StartRequest(op);
  if (op.nameless) return StartEntry(op);
  // Among others it begins in the next Flush: what is known of its location is in the processor's cache by then.
  if (Gathers()) {
    locations_.Prefetch(op.key_hash);
    op.step = Step::kStarting;
    to_start_.push_back(op.index);
  } else if (!StartLocatedGet(op)) {
    StartGet(op);
  }
}

void Engine::StartGets() {
  const bool gathering = std::exchange(gathering_, true);
  for (const OpIndex index : to_start_) {
    Operation& op = ops_[index];
    // (Else it has ended with its connection.)
    if (op.step == Step::kStarting && !StartLocatedGet(op)) StartGet(op);
  }
  to_start_.clear();
  gathering_ = gathering;
}

// Nobody knows how far a step came that found no memory. So every operation ends with its connection, which leaves none
// half done; the next one connects again. Needs no memory: `closed_` is cleared before, and has had its room.
void Engine::EndAll() noexcept {
  to_start_.clear();
  to_flush_.clear();
  closed_.clear();
  for (const auto& link : links_) CloseLink(*link, Status(Code::kResourceExhausted));
  closed_.clear();
  out_of_memory_ = false;
}

// --- Finishing

void Engine::Finish(Operation& op, Status status) {
  if (op.sending > 0) {
    op.result = std::move(status);
    op.step = Step::kSent;
    return;
  }
  if (!polling_) return Defer(op, std::move(status));  // no callback inside the call that started the operation
  op.result = std::move(status);
  Deliver(op);
}

void Engine::Defer(Operation& op, Status status) {
  op.result = std::move(status);
  op.step = Step::kDone;
  done_.push_back(op.index);
}

// Those that are there now: a callback that starts another operation, which fails as well, must not keep Poll for ever.
void Engine::DeliverDeferred() {
  const size_t n = done_.size();
  for (size_t i = 0; i < n; ++i) Deliver(ops_[done_[i]]);
  done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
}

void Engine::Deliver(Operation& op) {
  op.step = Step::kDone;
  if (op.type == OpType::kGet) return EndGet(op, Result<std::string_view>(std::move(op.result)));
  if (op.type == OpType::kBlock) return EndBlock(op, std::move(op.result));
  const Code code = op.result.code();
  if (op.type == OpType::kPut || op.type == OpType::kIncrement) ++stats_.puts;
  if (op.type == OpType::kDelete) ++stats_.deletes;
  if (code != Code::kOk && code != Code::kNotFound && code != Code::kConflict) ++stats_.failures;
  try {
    ReleaseSlot(op);
    if (op.staged != Operation::kNotStaged) GiveStagingBack(op);
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;  // the next one on the slot could not go on; this one has its end all the same
  }
  const Status result = std::move(op.result);
  Retire(op, [&] {
    if (op.put_done) {
      op.put_done(result.ok() ? Result<uint64_t>(op.number) : Result<uint64_t>(result));
    } else if (op.increment_done) {
      op.increment_done(result.ok() ? Result<int64_t>(static_cast<int64_t>(op.number)) : Result<int64_t>(result));
    } else {
      op.done(result);
    }
  });
}

void Engine::FinishGet(Operation& op, const VersionedView& found) {
  if (op.buffer) return EndGet(op, InBuffer(*op.buffer, found.value));
  ++stats_.gets;
  Retire(op, [&] {
    if (op.get_done) {
      op.get_done(Result<std::string_view>(found.value));
    } else if (op.get_versioned_done) {
      op.get_versioned_done(Result<VersionedView>(found));
    } else {
      op.entry_done(op.key_view(), Result<VersionedView>(found));
    }
  });
}

void Engine::EndGet(Operation& op, Result<std::string_view>&& value) {
  const Code code = value.status().code();
  ++stats_.gets;
  if (code != Code::kOk && code != Code::kNotFound && code != Code::kConflict) ++stats_.failures;
  Retire(op, [&] {
    if (op.get_done) {
      op.get_done(std::move(value));
    } else if (op.get_versioned_done) {
      op.get_versioned_done(Result<VersionedView>(value.status()));
    } else {
      op.entry_done(op.key_view(), Result<VersionedView>(value.status()));
    }
  });
}

void Engine::EndBlock(Operation& op, const Result<BlockView>& block) {
  if (!block.ok()) ++stats_.failures;
  Retire(op, [&] { op.block_done(block); });
}

// The callback runs while the operation is neither in flight nor free: a value that it is given lies in the operation's
// memory. The next one on the key begins after it.
template <class Callback>
void Engine::Retire(Operation& op, Callback&& callback) {
  const OpIndex next = op.in_order ? key_order_.Leave(std::span(ops_), op) : kNoOp;
  op.step = Step::kFree;
  --in_flight_;
  ++finished_;
  if (op.buffer) op.buffer->in_use = false;
  // It must not throw; if it does all the same, nothing else gets stuck: Poll throws it when all is done.
  try {
    callback();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  GoOn(op, next);
}

void Engine::GoOn(Operation& op, OpIndex next) {
  Free(op);
  if (next == kNoOp) return;
  if (ops_[next].doomed) return Defer(ops_[next], std::move(ops_[next].result));
  Run(ops_[next]);
}

void Engine::Free(Operation& op) {
  op.step = Step::kFree;
  if (op.type == OpType::kGet) {
    op.get_done = nullptr;
    op.get_versioned_done = nullptr;
    op.entry_done = nullptr;
  } else if (op.type == OpType::kBlock) {
    op.block_done = nullptr;
    op.large.reset();  // a put from such memory takes a completion more
  } else {
    op.done = nullptr;
    op.put_done = nullptr;
    op.increment_done = nullptr;
  }
  op.DropLargeMemory();
  op.buffer.reset();
  op.in_buffer = {};
  free_ops_.push_back(op.index);
}

}  // namespace erda::client
