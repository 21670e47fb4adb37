#include "client/event_loop.h"

#include <new>

#include "base/planted.h"
#include "client/link.h"
#include "format/messages.h"

namespace erda::client {

using fabric::Completion;
using fabric::OpKind;

namespace {

// A client without operations may sleep this long: its descriptor tells of everything that happens.
constexpr Nanoseconds kIdleSleep = std::chrono::hours(1);

}  // namespace

// --- A Poll

size_t EventLoop::Poll() {
  if (operations_.polling()) return 0;  // a callback has called it
  const Operations::Polling polling(operations_);
  if (!connections_.gives_up()) {
    try {
      Progress();
    } catch (const std::bad_alloc&) {
      connections_.GiveUp();
    }
  }
  if (connections_.gives_up()) EndAll();
  if (operations_.has_thrown()) operations_.ThrowAgain();
  return operations_.finished();
}

// Ends all operations with their connections, since a step found no memory.
void EventLoop::EndAll() {
  kinds_.gets.ForgetToStart();
  posting_.Clear();
  connections_.EndAll();
  went_on_ = true;
  DeliverDeferred();
}

void EventLoop::Progress() {
  const bool goes_on = posting_.has_pending() || connections_.has_closed() || operations_.has_deferred();
  if (goes_on) GoOn();
  const size_t n = connections_.links().queue().Poll(completions_);
  went_on_ = n > 0;
  if (n > 0 || goes_on) TakeCompletions(n);
  deadlines_.OnPoll(n == 0);
}

// Goes on with the operations that were started, or have ended, since the last Poll.
void EventLoop::GoOn() {
  Flush();
  connections_.DestroyClosed();
  if (operations_.has_deferred()) {
    posting_.SetGathers(true);
    DeliverDeferred();
    Flush();
  }
}

void EventLoop::TakeCompletions(size_t n) {
  posting_.SetGathers(n > 1);
  // Without memory, a channel that a later completion names may be destroyed already. EndAll ends the operations that
  // are left.
  for (size_t i = 0; i < n && !connections_.gives_up(); ++i) {
    Dispatch(completions_[i]);
    RunReady();
  }
  Flush();
  if (connections_.has_closed()) EndClosed();
}

// The connections go before the callbacks run. A callback may use the memory of an operation that has ended for a new
// one, and nothing may send from there any more.
void EventLoop::EndClosed() {
  connections_.DestroyClosed();
  DeliverDeferred();
  Flush();
}

void EventLoop::Wait(Nanoseconds timeout) {
  if (connections_.gives_up()) return;
  try {
    connections_.links().queue().Wait(timeout);
  } catch (const std::bad_alloc&) {
    connections_.GiveUp();
  }
  deadlines_.OnWait();
}

// Operations that were started since the last Poll are not sent yet.
Nanoseconds EventLoop::Arm() {
  if (connections_.gives_up() || posting_.has_pending() || operations_.has_deferred() || connections_.has_closed()) {
    return Nanoseconds(0);
  }
  Nanoseconds at_most = operations_.in_flight() > 0 ? deadlines_.between_checks() : kIdleSleep;
  try {
    return connections_.links().queue().Arm(&at_most) ? at_most : Nanoseconds(0);
  } catch (const std::bad_alloc&) {
    connections_.GiveUp();
    return Nanoseconds(0);
  }
}

void EventLoop::Disarm() {
  try {
    connections_.links().queue().Disarm();
  } catch (const std::bad_alloc&) {
    connections_.GiveUp();
  }
  deadlines_.OnWait();
}

void EventLoop::FlushAll() {
  kinds_.gets.StartTogether();
  RunReady();
  posting_.Flush();
}

void EventLoop::DeliverDeferred() {
  operations_.DeliverDeferred([this](Operation& op) {
    kinds_.Deliver(op);
    RunReady();
  });
}

// --- From a completion to its operation

void EventLoop::Dispatch(const Completion& completion) {
  auto& link = *static_cast<Link*>(completion.channel->user);
  if (link.channel() != completion.channel) return;  // closed earlier in this Poll
  if (completion.kind == OpKind::kReceiveImm && (completion.imm & format::kRevokes) == 0) [[likely]] {
    return OnReply(link, completion.imm);
  }
  DispatchOther(link, completion);
}

void EventLoop::DispatchOther(Link& link, const Completion& completion) {
  switch (completion.kind) {
    case OpKind::kConnected:
      if (connections_.OnConnected(link)) kinds_.locations.SetServer(link.hello().server_id);
      return;
    case OpKind::kClosed:
      return connections_.OnClosed(link);
    case OpKind::kReceiveImm:
      return own_requests_.OnChunkRevoked(link, format::LogAddress(completion.imm));
    case OpKind::kWriteImm:
      // (An error is followed by kClosed, here and below.)
      if (completion.code == Code::kOk) kinds_.puts.OnSent(static_cast<OpIndex>(completion.id));
      return;
    case OpKind::kWrite:
      if (Planted(Flaw::kNoReadBehindWrite) && completion.code == Code::kOk) {
        kinds_.puts.OnPlaced(static_cast<PutOp&>(operations_[static_cast<OpIndex>(completion.id)]));
      }
      return;
    case OpKind::kRead: {
      if (completion.code != Code::kOk) return;
      if (completion.id == ControlCopy::kReadId) return OnControlRead(link);
      const OpIndex moved = Posting::MovedBy(completion.id);
      return moved == kNoOp ? void() : kinds_.OnRead(operations_[moved]);
    }
    default:
      return;
  }
}

void EventLoop::OnReply(Link& link, uint32_t slot) {
  const OpIndex owner = link.slots.OwnerOf(slot);
  if (owner == RequestSlots::kFree)
    return connections_.CloseSince(link,
                                   ": unexpected reply from the server: it fits no request of this client; use a "
                                   "server and a client of one version");
  if (!OwnRequests::Owns(owner)) return kinds_.puts.OnReply(owner, slot);
  OnOwnReply(link, owner, slot);
}

void EventLoop::OnOwnReply(Link& link, OpIndex owner, uint32_t slot) {
  if (own_requests_.OnReply(link, owner, slot)) kinds_.puts.PassSlotOn(link, slot);
}

void EventLoop::OnControlRead(Link& link) {
  if (connections_.OnControlRead(link)) {
    // Operations that wait now, unless the link is closed meanwhile.
    auto& waiting = link.waiting_for_link;
    for (size_t n = waiting.size(); n > 0 && !waiting.empty(); --n) {
      Operation& op = operations_[waiting.front()];
      waiting.pop_front();
      if (op.step == Step::kLinkUp) Run(op);  // perhaps to another shard than was expected
      RunReady();
    }
  }
  auto& waiting = link.waiting_for_heads;
  for (size_t n = waiting.size(); n > 0 && !waiting.empty(); --n) {
    Operation& op = operations_[waiting.front()];
    waiting.pop_front();
    if (op.step != Step::kHeads) continue;  // it ended with the link, which an earlier operation found broken
    kinds_.OnHeads(op);
    RunReady();
  }
}

// --- From an operation to its steps

// Without memory for its first step the operation waits, and EndAll ends it with the others.
void EventLoop::Run(Operation& op) {
  op.link = &connections_.links().Of(op);
  try {
    BeginSteps(op);
  } catch (const std::bad_alloc&) {
    if (!op.waits_for_link() && op.step != Step::kDone) op.step = Step::kLinkUp;
    connections_.GiveUp();
  }
}

// Begins the operation's own steps, or connects first.
void EventLoop::BeginSteps(Operation& op) {
  Link& link = *op.link;
  // A client that was idle may have lost its connection. No other operation is outstanding, so it connects again, and
  // the caller does not notice.
  const bool lost = operations_.in_flight() == 1 && !operations_.polling() && link.up() && link.channel()->lost();
  if (lost) connections_.CloseSince(link, ": the server closed the connection");
  return link.up() ? kinds_.Start(op) : WaitForLink(op);
}

void EventLoop::WaitForLink(Operation& op) {
  op.step = Step::kLinkUp;
  op.link->waiting_for_link.push_back(op.index);
  connections_.Ensure(*op.link);
}

}  // namespace erda::client
