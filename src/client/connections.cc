// Connections: one to each shard, made when an operation needs it. What ends with one, and what they say of the pool.
#include <new>
#include <utility>

#include "base/hash.h"
#include "base/planted.h"
#include "client/engine.h"

namespace erda::client {

namespace {

// Of an operation that ends with its connection, when another one has timed out. Else a copy, which needs no memory.
Status OfOthers(const Status& status) {
  if (status.code() != Code::kTimeout) return status;
  return {Code::kUnavailable, std::string(status.message())};
}

}  // namespace

// --- Connecting

Result<bool> Engine::Connect() {
  // The first shard's link says how many there are.
  bool all_up = geometry_known_;
  for (size_t i = 0; i < shards(); ++i) {
    if (links_[i]->up()) continue;
    all_up = false;
    if (auto status = EnsureConnecting(*links_[i]); !status.ok()) return status;
  }
  return all_up;
}

Status Engine::EnsureConnecting(Link& link) {
  if (link.state() != Link::State::kDown) return {};
  return link.Connect(options_.queue_depth);
}

// The server wants a proof: the token is read anew, since it may have been changed.
void Engine::Prove(Link& link) {
  auto token = options_.token ? options_.token() : Result<std::string>("");
  if (!token.ok()) return CloseLink(link, token.status());
  if (token->empty()) {
    return CloseLink(link, {Code::kPermissionDenied, address_ + ": the server asks for a token, and there is none"});
  }
  Link::Connection before;
  const Status status = link.Prove(*std::move(token), &before);
  closed_.push_back(std::move(before));
  if (!status.ok()) CloseLink(link, status);
}

void Engine::OnLinkConnected(Link& link) {
  if (auto status = link.OnConnected(clock_.Now(), options_.token != nullptr); !status.ok()) {
    return CloseLink(link, status);
  }
  const bool same = geometry_known_ && pool_uuid_ == link.hello().pool_uuid && hash_seed_ == link.hello().hash_seed &&
                    geometry_.shards == link.geometry().shards &&
                    geometry_.heads_per_shard == link.geometry().heads_per_shard;
  if (!same) AdoptGeometry(link);
  geometry_ = link.geometry();  // the pool may have been grown
  // (I12) What was known of locations ends with the server: the flags that take it back may be lost.
  const uint64_t server = Planted(Flaw::kKnowsForEver) ? 1 : link.hello().server_id;
  if (locations_server_ == server) return;
  locations_server_ = server;
  locations_.Reset(options_.cache_entries);
}

// The first connection, or another pool than before: whatever was known of the other shards is void.
void Engine::AdoptGeometry(const Link& link) {
  // First of all: once the geometry is known, ShardOf may name each of them, and this alone can find no memory. Links
  // are never removed: operations may point at them.
  for (auto shard = static_cast<uint32_t>(links_.size()); shard < link.geometry().shards; ++shard) {
    links_.push_back(std::make_unique<Link>(*fabric_, *queue_, address_, shard, options_.client_id));
  }
  geometry_known_ = true;
  geometry_ = link.geometry();
  pool_uuid_ = link.hello().pool_uuid;
  hash_seed_ = link.hello().hash_seed;
  // Operations that wait have hashes of the seed before. What is known of locations ends with the server (I12).
  for (Operation& op : ops_) {
    if (op.in_order) op.key_hash = HashKey(op.key_view(), hash_seed_);
  }
  key_order_.Rehash(std::span(ops_));
  for (auto& other : links_) {
    if (other.get() == &link || other->state() == Link::State::kDown) continue;
    CloseLink(*other, {Code::kUnavailable, address_ + ": the server has another pool now"});
  }
}

// A server that has no such shard serves another pool than the one that the client knows. Its first shard tells of that
// pool. Until then nobody knows which shard a key is in, so every link ends.
void Engine::OnLinkClosed(Link& link) {
  const Status reason = link.CloseReason();
  const bool is_refused = link.state() == Link::State::kConnecting && reason.code() == Code::kInvalidArgument;
  if (!is_refused || link.shard() == 0) return CloseLink(link, reason);
  for (auto& each : links_) {
    if (each->state() == Link::State::kDown) continue;
    CloseLink(*each, {Code::kUnavailable, address_ + ": the server has another pool now"});
  }
  geometry_known_ = false;
}

void Engine::OnControlRead(Link& link) {
  const bool was_up = link.up();
  link.OnControlRead();
  if (!was_up) {
    if (link.times_up++ > 0) ++stats_.reconnects;
    connect_error_ = Status();
    // Those that wait now, unless the link is closed meanwhile.
    auto& waiting = link.waiting_for_link;
    for (size_t n = waiting.size(); n > 0 && !waiting.empty(); --n) {
      const OpIndex index = waiting.front();
      waiting.pop_front();
      if (ops_[index].step == Step::kLinkUp) Run(ops_[index]);  // perhaps to another shard than was thought
    }
  }
  auto& waiting = link.waiting_for_heads;
  for (size_t n = waiting.size(); n > 0 && !waiting.empty(); --n) {
    Operation& op = ops_[waiting.front()];
    waiting.pop_front();
    if (op.step != Step::kHeads) continue;  // it ended with the link, which the one before it found broken
    if (op.type == OpType::kBlock) {
      StartBlock(op);
    } else if (op.type == OpType::kGet && op.block == kNoBlock) {
      StartGet(op);
    } else if (op.type == OpType::kGet) {
      // Without a slot there was no version to read, and no look at the entry behind it.
      DecideVersion(op, InspectRead(op), op.read_bytes == 0 ? EntryLook::kNotYet : EntryLook::kUnchanged);
    } else {
      WriteValue(op);
    }
  }
}

void Engine::WaitForHeads(Operation& op) {
  op.step = Step::kHeads;
  op.link->waiting_for_heads.push_back(op.index);
  if (auto status = op.link->ReadControl(); !status.ok()) CloseLink(*op.link, status);
}

// --- Ending

// Every operation on the link ends; the next one connects again.
void Engine::CloseLink(Link& link, const Status& status, OpIndex timed_out) {
  if (!link.up()) connect_error_ = status;
  if (auto connection = link.Close(); connection.channel) {
    try {
      closed_.push_back(std::move(connection));
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;  // it is closed at once: what else this Poll has of it must not be looked at
    }
  }
  if (report_link_ == &link) report_link_ = nullptr;
  link.waiting_for_link.clear();
  link.waiting_for_slot.clear();
  link.waiting_for_heads.clear();
  link.waiting_for_staging.clear();
  for (Operation& op : ops_) {
    if (op.step == Step::kKeyTurn && links_[ShardOf(op)].get() == &link) {
      // Ends as well, in its turn: each waiting for a time of its own would take for ever.
      op.doomed = true;
      op.result = OfOthers(status);
      continue;
    }
    if (op.link != &link || !op.waits_for_link()) continue;
    op.slot = Link::kNoSlot;  // gone with the channel
    op.staged = Operation::kNotStaged;
    op.sending = 0;
    if (op.step == Step::kSent) {
      Defer(op, std::move(op.result));
    } else if (op.index == timed_out) {
      Defer(op, {Code::kTimeout,
                 address_ + ": no answer in " +
                     std::to_string(std::chrono::ceil<std::chrono::milliseconds>(options_.timeout).count()) + " ms"});
    } else {
      Defer(op, OfOthers(status));
    }
  }
}

// --- Control blocks

Status Engine::BeginReadControls() try {
  for (const auto& link : links()) {
    if (!link->up()) return {Code::kUnavailable, address_ + ": not connected"};
    if (auto status = link->ReadControl(true); !status.ok()) {
      CloseLink(*link, status);
      return status;
    }
  }
  return {};
} catch (const std::bad_alloc&) {
  out_of_memory_ = true;
  return Status(Code::kResourceExhausted);
}

bool Engine::ControlsRead() const {
  return std::none_of(links().begin(), links().end(), [](const auto& link) { return link->control_read_pending; });
}

}  // namespace erda::client
