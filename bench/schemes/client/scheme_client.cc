#include "bench/schemes/client/scheme_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/relax.h"

namespace erda::schemes {

using fabric::Completion;
using fabric::OpKind;
using fabric::WorkRequest;

namespace {

// How often the client looks whether an operation waits for too long, as in Erda's client (src/client/engine.cc).
constexpr int64_t kChecksPerTimeout = 16;
constexpr uint32_t kBusyPollsPerCheck = 256;
constexpr uint32_t kIdlePollsPerCheck = 8;

// How long a call looks before it sleeps, and the number of looks between two looks at the clock. They are those of
// Erda's client (src/client/client.cc).
constexpr std::chrono::microseconds kSpin{50};
constexpr uint32_t kLooksPerClock = 64;
constexpr std::chrono::milliseconds kSleep{10};

}  // namespace

// --- Connecting

Status SchemeClient::Connect() {
  if (auto status = Prepare(); !status.ok()) return status;
  const Nanoseconds deadline = SteadyClock::Instance().Now() + options_.timeout;
  while (!link_.accepted()) {
    Poll();
    if (!broken_.ok()) return broken_;
    if (SteadyClock::Instance().Now() > deadline) {
      return {Code::kTimeout, link_.address() + ": no answer in " + std::to_string(options_.timeout.count()) + " ms"};
    }
    if (!link_.accepted()) link_.queue().Wait(std::chrono::milliseconds(1));
  }
  return {};
}

Status SchemeClient::Prepare() {
  if (options_.queue_depth < 1 || options_.queue_depth >= kSlotsMax) {
    return {Code::kInvalidArgument, "queue_depth must be 1 to " + std::to_string(kSlotsMax - 1)};
  }
  const uint32_t count = options_.queue_depth + 1;
  ops_.resize(count);
  key_order_.Reset(count);
  return link_.Open(count);
}

Status SchemeClient::OnConnected() {
  if (auto status = link_.Accept(kMessageAt); !status.ok()) return status;
  for (OpIndex i = 0; i < ops_.size(); ++i) {
    ops_[i].index = i;
    ops_[i].memory = link_.MemoryOf(i);
    free_ops_.push_back(i);
  }
  return {};
}

// --- Taking an operation

Result<SchemeClient::Operation*> SchemeClient::NewOperation(RequestOp kind, std::string_view key, uint64_t value_size) {
  if (!broken_.ok()) return broken_;
  const size_t key_most = std::min<size_t>(kKeyBytesMax, hello().slot_bytes - sizeof(Request));
  if ((key.empty() && kind != RequestOp::kCounters) || key.size() > key_most) {
    return Status(Code::kInvalidArgument,
                  "a key has 1 to " + std::to_string(key_most) + " bytes, not " + std::to_string(key.size()));
  }
  if (value_size > max_value_bytes(key.size())) {
    return Status(Code::kInvalidArgument,
                  link_.address() + " takes values up to " + std::to_string(max_value_bytes(key.size())) + " bytes");
  }
  if (in_flight_ == options_.queue_depth) {
    return Status(Code::kResourceExhausted, "the most operations are outstanding; wait for some of them");
  }
  Operation& op = ops_[free_ops_.back()];
  free_ops_.pop_back();
  ++in_flight_;
  op.op = kind;
  op.sizes = PairSizes::OfPut(static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value_size));
  op.key_hash = keeps_key_order_ ? HashKey(key, kHashSeed) : 0;
  op.deadline = Nanoseconds(0);
  if (!key.empty()) std::memcpy(op.pair().data(), key.data(), key.size());
  return &op;
}

size_t SchemeClient::max_value_bytes(size_t key_bytes) const {
  const size_t space = hello().slot_bytes - sizeof(Request);
  return key_bytes > space ? 0 : std::min<size_t>(space - key_bytes, hello().value_bytes_max);
}

Status SchemeClient::GetAsync(std::string_view key, GetCallback done) {
  auto op = NewOperation(RequestOp::kGet, key, 0);
  if (!op.ok()) return op.status();
  (*op)->get_done = std::move(done);
  Begin(**op);
  return {};
}

Status SchemeClient::PutAsync(std::string_view key, std::string_view value, DoneCallback done) {
  auto op = NewOperation(RequestOp::kPut, key, value.size());
  if (!op.ok()) return op.status();
  (*op)->done = std::move(done);
  if (!value.empty()) std::memcpy((*op)->pair().data() + key.size(), value.data(), value.size());
  Begin(**op);
  return {};
}

Status SchemeClient::DeleteAsync(std::string_view key, DoneCallback done) {
  auto op = NewOperation(RequestOp::kDelete, key, 0);
  if (!op.ok()) return op.status();
  (*op)->done = std::move(done);
  Begin(**op);
  return {};
}

void SchemeClient::Begin(Operation& op) {
  const bool waits = keeps_key_order_ && key_order_.Join(std::span(ops_), op);
  op.step = waits ? Step::kKeyTurn : Step::kFree;
  if (!waits) Run(op);
}

void SchemeClient::Run(Operation& op) {
  op.step = Step::kReply;
  if (op.op == RequestOp::kPut) return StartPut(op);
  SendRequest(op, 0, sizeof(Request) + op.sizes.pair());
}

// --- Requests and answers

void SchemeClient::SendRequest(Operation& op, uint32_t crc, uint64_t bytes) {
  Request request{};
  const bool reserves = op.op == RequestOp::kPut && link_.scheme() == Scheme::kReadAfterWrite;
  request.op = static_cast<uint8_t>(reserves ? RequestOp::kReserve : op.op);
  request.sizes = op.sizes.raw();
  request.crc = crc;
  std::memcpy(op.message().data(), &request, sizeof(request));
  const WorkRequest work = WriteImmWork(op, op.message().first(bytes));
  Post({&work, 1});
}

WorkRequest SchemeClient::WriteImmWork(const Operation& op, std::span<std::byte> local) const {
  WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;  // The answer proves that it has arrived.
  work.imm = op.index;
  work.local = local;
  work.remote = {kRequestRegion, uint64_t{op.index} * hello().slot_bytes};
  return work;
}

void SchemeClient::Post(std::span<const WorkRequest> works) {
  const Status status = link_.channel().Post(works);
  if (!status.ok()) Break({Code::kUnavailable, link_.address() + ": the connection failed: " + status.ToString()});
}

void SchemeClient::Dispatch(const Completion& completion) {
  if (!broken_.ok()) return;
  switch (completion.kind) {
    case OpKind::kConnected:
      if (auto status = OnConnected(); !status.ok()) Break(status);
      return;
    case OpKind::kClosed:
      return Break(link_.CloseReason());
    case OpKind::kReceiveImm:
      if (completion.imm >= ops_.size()) {
        return Break(
            {Code::kUnavailable, link_.address() + ": the server sent an answer to no request of this client"});
      }
      return OnReply(ops_[completion.imm]);
    case OpKind::kRead:
      if (completion.code == Code::kOk) Finish(ops_[static_cast<OpIndex>(completion.id)], Status());
      return;  // Otherwise kClosed follows.
    default:
      return;
  }
}

void SchemeClient::OnReply(Operation& op) {
  const auto reply = LoadAs<Reply>(link_.ReplyOf(op.index));
  const bool asked = op.step == Step::kReply || op.step == Step::kCommitted;
  if (!asked || reply.code > static_cast<uint8_t>(Code::kInternal) ||
      reply.value_size > kReplySlotBytes - sizeof(Reply)) {
    return Break({Code::kUnavailable, link_.address() + ": the server sent an answer to no request of this client"});
  }
  const auto code = static_cast<Code>(reply.code);
  if (code == Code::kResourceExhausted) return Finish(op, {code, link_.address() + " has no room for it"});
  if (code != Code::kOk) return Finish(op, Status(code));
  op.value_size = reply.value_size;
  if (op.op == RequestOp::kPut && op.step == Step::kReply) return OnPutAnswered(op, reply);
  Finish(op, Status());
}

std::string_view SchemeClient::ValueOf(const Operation& op) const {
  return AsString(link_.ReplyOf(op.index).subspan(sizeof(Reply), op.value_size));
}

// --- Ending an operation

void SchemeClient::Finish(Operation& op, Status status) {
  op.result = std::move(status);
  op.step = Step::kDone;
  if (polling_) return Deliver(op);
  done_.push_back(op.index);
}

// Runs the callback while the operation is neither in flight nor free: the value lies in its slot.
void SchemeClient::Deliver(Operation& op) {
  const OpIndex next = keeps_key_order_ ? key_order_.Leave(std::span(ops_), op) : client::kNoOp;
  op.step = Step::kFree;
  --in_flight_;
  ++finished_;
  const Status result = std::move(op.result);
  if (op.get_done) {
    const GetCallback done = std::exchange(op.get_done, nullptr);
    done(result.ok() ? Result<std::string_view>(ValueOf(op)) : Result<std::string_view>(result));
  } else {
    const DoneCallback done = std::exchange(op.done, nullptr);
    done(result);
  }
  free_ops_.push_back(op.index);
  if (next == client::kNoOp) return;
  if (broken_.ok()) return Run(ops_[next]);
  if (ops_[next].step == Step::kKeyTurn) Finish(ops_[next], broken_);
}

void SchemeClient::DeliverDeferred() {
  for (size_t n = done_.size(); n > 0; --n) {
    const OpIndex index = done_.front();
    done_.pop_front();
    Deliver(ops_[index]);
  }
}

void SchemeClient::Break(const Status& status) {
  if (!broken_.ok()) return;
  broken_ = status;
  for (Operation& op : ops_) {
    const bool waits = op.step == Step::kReply || op.step == Step::kPlaced || op.step == Step::kCommitted;
    if (!waits) continue;  // Operations that wait for their turn end with this one.
    op.result = status;
    op.step = Step::kDone;
    done_.push_back(op.index);
  }
}

// --- Progress

size_t SchemeClient::Poll() {
  if (polling_) return 0;  // Called from a callback.
  polling_ = true;
  finished_ = 0;
  if (!done_.empty()) DeliverDeferred();
  const size_t n = link_.queue().Poll(completions_);
  for (size_t i = 0; i < n; ++i) Dispatch(completions_[i]);
  if (!done_.empty()) DeliverDeferred();
  const uint32_t between_checks = (n == 0 ? kIdlePollsPerCheck : kBusyPollsPerCheck) - 1;
  if (in_flight_ > 0 && (++polls_ & between_checks) == 0) CheckDeadlines();
  polling_ = false;
  return finished_;
}

void SchemeClient::CheckDeadlines() {
  const Nanoseconds now = SteadyClock::Instance().Now();
  if (now < next_check_) return;
  next_check_ = now + Nanoseconds(options_.timeout) / kChecksPerTimeout;
  for (Operation& op : ops_) {
    if (op.step != Step::kReply && op.step != Step::kPlaced && op.step != Step::kCommitted) continue;
    if (op.deadline.count() == 0) {
      op.deadline = now + options_.timeout;
    } else if (now > op.deadline) {
      return Break(
          {Code::kTimeout, link_.address() + ": no answer in " + std::to_string(options_.timeout.count()) + " ms"});
    }
  }
}

// --- Calls that wait

template <class Done>
void SchemeClient::WaitFor(Done&& done) {
  Relax relax;
  Nanoseconds idle_since{0};
  while (!done()) {
    if (Poll() > 0) {
      relax.Reset();
      idle_since = Nanoseconds(0);
      continue;
    }
    if (options_.polling == Polling::kBusy) {
      Relax::Pause();
      continue;
    }
    if (options_.polling == Polling::kAdaptive) {
      relax.Step();
      if (relax.steps() % kLooksPerClock != 0) continue;
      const Nanoseconds now = SteadyClock::Instance().Now();
      if (idle_since.count() == 0) idle_since = now;
      if (now - idle_since <= kSpin) continue;
    }
    link_.queue().Wait(kSleep);
    polls_ = UINT32_MAX;  // Time has passed, so the next Poll looks at the clock.
  }
}

template <class Start>
Status SchemeClient::RunToEnd(Outcome& outcome, Start&& start) {
  const auto has_room = [this] { return in_flight_ < options_.queue_depth; };
  if (!has_room()) WaitFor(has_room);
  if (auto status = start(); !status.ok()) return status;
  WaitFor([&outcome] { return outcome.finished; });
  return std::move(outcome.status);
}

Result<size_t> SchemeClient::Get(std::string_view key, std::span<std::byte> out) {
  struct GetOutcome : Outcome {
    std::span<std::byte> out;
    size_t size = 0;
  } get;
  get.out = out;
  const auto take = [&get](const Result<std::string_view>& value) {
    if (!value.ok()) return get.Set(value.status());
    if (value->size() > get.out.size()) return get.Set({Code::kInvalidArgument, "the buffer is too short"});
    get.size = value->size();
    if (!value->empty()) std::memcpy(get.out.data(), value->data(), value->size());
    get.Set(Status());
  };
  if (auto status = RunToEnd(get, [&] { return GetAsync(key, take); }); !status.ok()) return status;
  return get.size;
}

Status SchemeClient::Put(std::string_view key, std::string_view value) {
  Outcome outcome;
  const auto end = [&outcome](Status status) { outcome.Set(std::move(status)); };
  return RunToEnd(outcome, [&] { return PutAsync(key, value, end); });
}

Status SchemeClient::Delete(std::string_view key) {
  Outcome outcome;
  const auto end = [&outcome](Status status) { outcome.Set(std::move(status)); };
  return RunToEnd(outcome, [&] { return DeleteAsync(key, end); });
}

Result<Counters> SchemeClient::ServerCounters() {
  Outcome outcome;
  Counters counters{};
  const auto take = [&outcome, &counters](const Result<std::string_view>& value) {
    if (!value.ok()) return outcome.Set(value.status());
    if (value->size() < sizeof(counters)) return outcome.Set({Code::kInternal, "the server's counters are cut off"});
    counters = LoadAs<Counters>(AsBytes(*value));
    outcome.Set(Status());
  };
  Status status = RunToEnd(outcome, [&] {
    auto op = NewOperation(RequestOp::kCounters, "", 0);
    if (!op.ok()) return op.status();
    (*op)->get_done = take;
    Begin(**op);
    return Status();
  });
  if (!status.ok()) return status;
  return counters;
}

Result<uint64_t> SchemeClient::ServerNvmBytes() {
  const auto counters = ServerCounters();
  if (!counters.ok()) return counters.status();
  return counters->nvm_bytes;
}

}  // namespace erda::schemes
