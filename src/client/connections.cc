#include "client/connections.h"

#include <algorithm>
#include <new>

#include "base/planted.h"

namespace erda::client {

namespace {

// The status of an operation that ends since another one on its connection has timed out. Any other status is copied,
// which needs no memory.
Status OfOthers(const Status& status) {
  if (status.code() != Code::kTimeout) return status;
  return {Code::kUnavailable, std::string(status.message())};
}

}  // namespace

// --- Making

Result<bool> Connections::Connect() {
  // The first shard's server says how many shards there are.
  bool all_up = pool().is_known;
  for (const auto& link : links_) {
    if (link->up()) continue;
    all_up = false;
    if (link->state() != Link::State::kDown) continue;
    if (auto status = link->Connect(options_.queue_depth); !status.ok()) return status;
  }
  return all_up;
}

void Connections::Ensure(Link& link) {
  if (link.state() != Link::State::kDown) return;
  if (auto status = link.Connect(options_.queue_depth); !status.ok()) Close(link, status);
}

// The client fetches the token for each proof, since its file may have changed.
void Connections::Prove(Link& link) {
  auto token = options_.token ? options_.token() : Result<std::string>("");
  if (!token.ok()) return Close(link, token.status());
  if (token->empty()) {
    return Close(link,
                 {Code::kPermissionDenied, address() + ": the server asks for a token, and this client has no token"});
  }
  Connection refused;
  const Status status = link.Prove(*std::move(token), &refused);
  closed_.push_back(std::move(refused));
  if (!status.ok()) Close(link, status);
}

bool Connections::OnConnected(Link& link) {
  if (auto status = link.OnConnected(clock_.Now(), options_.token != nullptr); !status.ok()) {
    Close(link, status);
    return false;
  }
  if (links_.Learn(link)) {
    operations_.Rehash(pool().hash_seed);
    CloseOthers(&link);
  }
  return true;
}

void Connections::CloseOthers(const Link* but) {
  for (const auto& other : links_.all()) {
    if (other.get() == but || other->state() == Link::State::kDown) continue;
    CloseSince(*other, ": the server has another pool now");
  }
}

bool Connections::OnControlRead(Link& link) {
  const bool was_up = link.up();
  link.OnControlRead();
  if (was_up) return false;
  if (link.times_up++ > 0) ++stats_.reconnects;
  connect_error_ = Status();
  return true;
}

// --- Losing

void Connections::OnClosed(Link& link) {
  if (link.IsChallenged()) return Prove(link);
  const Status reason = link.CloseReason();
  const bool is_refused = link.state() == Link::State::kConnecting && reason.code() == Code::kInvalidArgument;
  if (!is_refused || link.shard() == 0) return Close(link, reason);
  // A server that has no such shard serves another pool than the one that the client knows. Its first shard tells of
  // that pool. Until then nobody knows which shard a key is in, so every link ends.
  CloseOthers(nullptr);
  links_.ForgetPool();
}

void Connections::Close(Link& link, const Status& status, OpIndex timed_out) {
  if (!link.up()) connect_error_ = status;
  if (auto connection = link.Close(); connection.channel() != nullptr) {
    try {
      closed_.push_back(std::move(connection));
    } catch (const std::bad_alloc&) {
      gives_up_ = true;  // it is destroyed at once, so this Poll must not look at its other completions
    }
  }
  EndOperationsOn(link, status, timed_out);
}

void Connections::EndOperationsOn(const Link& link, const Status& status, OpIndex timed_out) {
  for (OpIndex i = 0; i < operations_.size(); ++i) {
    Operation& op = operations_[i];
    if (op.step == Step::kKeyTurn && &links_.Of(op) == &link) {
      // It ends in its turn: if each waiting operation waited for a connection, all would take for ever.
      op.doomed = true;
      op.result = OfOthers(status);
      continue;
    }
    if (op.link != &link || !op.waits_for_link()) continue;
    op.link_lost = true;
    if (op.step == Step::kSent) {
      operations_.Defer(op, std::move(op.result));
    } else if (op.index == timed_out) {
      operations_.Defer(
          op, {Code::kTimeout,
               address() + ": no answer in " +
                   std::to_string(std::chrono::ceil<std::chrono::milliseconds>(options_.timeout).count()) + " ms"});
    } else {
      operations_.Defer(op, OfOthers(status));
    }
  }
}

void Connections::EndAll() noexcept {
  closed_.clear();
  for (const auto& link : links_.all()) Close(*link, Status(Code::kResourceExhausted));
  closed_.clear();
  gives_up_ = false;
}

// --- Control blocks

bool Connections::ReadControl(Link& link) {
  const Status status = link.ReadControl();
  if (!status.ok()) Close(link, status);
  return status.ok();
}

void Connections::WaitForHeads(Operation& op) {
  op.step = Step::kHeads;
  op.link->waiting_for_heads.push_back(op.index);
  (void)ReadControl(*op.link);
}

Status Connections::BeginReadControls() try {
  for (const auto& link : links_) {
    if (!link->up()) return {Code::kUnavailable, address() + ": not connected"};
    if (auto status = link->ReadControl(true); !status.ok()) {
      Close(*link, status);
      return status;
    }
  }
  return {};
} catch (const std::bad_alloc&) {
  gives_up_ = true;
  return Status(Code::kResourceExhausted);
}

bool Connections::ControlsRead() const {
  return std::ranges::none_of(links_, [](const auto& link) { return link->control().pending(); });
}

}  // namespace erda::client
