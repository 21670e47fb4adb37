#include "fabric/shm/channel.h"

#include <utility>

#include "fabric/shm/read_ahead.h"

namespace erda::fabric::shm {

namespace {

[[gnu::noinline]] Status PeerIsGone(const std::string& address) {
  return {Code::kUnavailable, address + ": the peer is gone"};
}

}  // namespace

// --- The work for each operation

// Most batches are one message without a completion: a request or a reply. A longer way costs more than its copy.
Status ShmChannel::Post(std::span<const WorkRequest> batch) {
  const auto is_message = [](const WorkRequest& work) { return work.kind == OpKind::kWriteImm && !work.signaled; };
  if (batch.size() != 1 || !is_message(batch[0]) || !connected() || !sender_.Send(batch[0])) return PostBatch(batch);
  if (sender_.Publish()) RingDoorbell();
  return {};
}

void ShmChannel::RingDoorbell() {
  if (!doorbell_.Ring()) queue_->OweRing(this);
}

Status ShmChannel::PostBatch(std::span<const WorkRequest> batch) {
  if (!connected()) return {Code::kUnavailable, address_ + ": not connected"};
  if (Status status = sender_.Check(batch); !status.ok()) return status;
  bool sent = false;
  Code failure = Code::kOk;  // Of the first operation that failed.
  Sender::Batch sending(sender_);
  ReadAhead ahead(sender_.memory(), batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    const WorkRequest& work = batch[i];
    if (batch.size() > 1) ahead.ComeTo(i);
    Code code = failure == Code::kOk ? sending.Execute(work) : Code::kUnavailable;
    if (code == Code::kOk && !work.signaled && work.kind != OpKind::kRead) {
      sent |= work.kind != OpKind::kWrite;
      continue;
    }
    // An operation completes well only if the peer was there when it was executed. The memory of a peer that left is
    // still mapped here, but its bytes are out of date, and Writes to it come too late.
    if (code == Code::kOk && !sender_.PeerWasThere()) code = Code::kUnavailable;
    if (code == Code::kOk) {
      sent |= work.kind == OpKind::kWriteImm || work.kind == OpKind::kSend;
    } else if (failure == Code::kOk) {
      failure = code;
      state_ = State::kFailed;  // Already here: without memory, this function may throw before EndAndTell.
    }
    Completion completion;
    completion.channel = this;
    completion.kind = work.kind;
    completion.code = code;
    completion.imm = work.imm;
    completion.id = work.id;
    if (code == Code::kOk) completion.bytes = static_cast<uint32_t>(work.local.size());
    queue_->Complete(completion);
  }
  sending.EndPlacing();
  // Messages before the failure have been sent, so the peer must hear of them.
  if (sent && sender_.Publish()) RingDoorbell();
  if (failure != Code::kOk) {
    EndAndTell(failure == Code::kUnavailable
                   ? PeerIsGone(address_)
                   : Status(failure, address_ + ": the peer did not grant access to that memory"));
  }
  return {};
}

// The peer must have been there, as for a Read that completes in Post.
bool ShmChannel::ReadNow(std::span<std::byte> local, RemoteAddress remote) {
  return state_ == State::kConnected && sender_.Read(local, remote) && sender_.PeerWasThere();
}

size_t ShmChannel::Receive(std::span<Completion> out, std::deque<std::vector<std::byte>>* inbox) {
  if (state_ != State::kConnected) return 0;
  // The queue heard the end of the socket before this look into the ring, so the ring holds all messages that the peer
  // ever sent. Only the thread of the queue hears the doorbell, and never in this function.
  const bool last = doorbell_.peer_is_gone();
  size_t n = 0;
  while (n < out.size()) {
    Descriptor descriptor{};
    const Ring::Look look = receive_.Peek(&descriptor);
    if (look == Ring::Look::kEmpty) {
      if (last) Fail(PeerIsGone(address_));
      break;
    }
    const auto kind = static_cast<OpKind>(descriptor.kind);
    Completion& completion = out[n];
    completion = {this, kind, Code::kOk, descriptor.imm, 0, descriptor.bytes, {}};
    const bool is_message = kind == OpKind::kReceive && descriptor.bytes <= kSendBytesMax;
    if (look == Ring::Look::kNonsense || (!is_message && kind != OpKind::kReceiveImm)) {
      Blame("wrote wrong numbers into the channel");
      break;
    }
    if (is_message) {
      inbox->emplace_back(descriptor.bytes);
      receive_.Copy(inbox->back());
      completion.data = inbox->back();
    }
    receive_.Advance();
    ++n;
  }
  if (n > 0) notes_.heard = true;
  return n;
}

// --- Setting up

ShmChannel::ShmChannel(ShmQueue* queue, MemoryMaps* maps, std::string address, UniqueFd socket, RingMemory rings)
    : queue_(queue),
      maps_(maps),
      address_(std::move(address)),
      state_(State::kAsking),
      doorbell_(std::move(socket)),
      rings_(std::move(rings)),
      sender_(rings_.of_connecting_end()),
      receive_(rings_.of_accepting_end()) {}

ShmChannel::ShmChannel(ShmQueue* queue, UniqueFd socket, const Greeting& ask, RingMemory rings, PeerMemory memory,
                       std::shared_ptr<Beacon> beacon)
    : queue_(queue),
      maps_(nullptr),
      address_("the client"),
      state_(State::kConnected),
      doorbell_(std::move(socket)),
      rings_(std::move(rings)),
      sender_(rings_.of_accepting_end()),
      receive_(rings_.of_connecting_end()),
      own_beacon_(std::move(beacon)),
      peer_greeting_(ask) {
  sender_.Connect(std::move(memory), nullptr);
}

ShmChannel::~ShmChannel() {
  receive_.Leave();
  queue_->Remove(this);
}

// --- The socket

// After any report of the socket, the queue must look into the ring again: a parked channel may have a message there.
void ShmChannel::OnSocket() {
  if (state_ == State::kAsking) return OnAnswer();
  if (state_ == State::kConnected) {
    doorbell_.Hear();
    // An honest peer rings at most once for each message, after it published that. A peer that rings more often tries
    // to cost others time.
    if (doorbell_.heard() > receive_.consumed() + receive_.depth()) Blame("rings the doorbell without a message");
  }
  queue_->Unpark(this);
}

void ShmChannel::OnAnswer() {
  Greeting answer;
  std::vector<UniqueFd> fds;
  const auto fail = [this](const Status& why) { Fail({why.code(), address_ + ": " + std::string(why.message())}); };
  const Status status = ReceiveGreeting(doorbell_.fd(), &answer, &fds);
  if (status.code() == Code::kTimeout) return;
  if (!status.ok()) return fail(status);
  if (answer.kind == Greeting::kReject) {
    peer_greeting_ = answer;
    return fail({Code::kPermissionDenied, "refused by the server"});
  }
  if (answer.kind != Greeting::kAccept || fds.size() != 1 + answer.regions) {
    return fail({Code::kInvalidArgument, "the server does not speak this version of the shm fabric"});
  }
  constexpr auto kTrust = MemoryMaps::Trust::kPeerIsTrusted;
  auto beacon = maps_->Map(fds[0], Beacon::kBytes, false, kTrust);
  if (!beacon.ok()) return fail(beacon.status());
  auto memory = PeerMemory::Map(answer, std::span(fds).subspan(1), maps_, kTrust);
  if (!memory.ok()) return fail(memory.status());
  peer_greeting_ = answer;
  sender_.Connect(*std::move(memory), *std::move(beacon));
  state_ = State::kConnected;
  queue_->CompleteConnected(this);
}

// --- Failing and closing

void ShmChannel::Blame(std::string_view rule) {
  peer_broke_rules_ = true;
  Fail({Code::kInternal, address_ + ": the peer " + std::string(rule)});
}

void ShmChannel::Fail(Status error) {
  if (state_ != State::kFailed) EndAndTell(std::move(error));
}

void ShmChannel::EndAndTell(Status error) {
  End(std::move(error));
  Completion completion;
  completion.channel = this;
  completion.kind = OpKind::kClosed;
  completion.code = error_.code();
  queue_->Complete(completion);
}

// Operations complete when they are posted, so there is nothing to flush.
void ShmChannel::End(Status error) {
  state_ = State::kFailed;
  error_ = std::move(error);
  receive_.Leave();
  queue_->Unwatch(this);
  doorbell_.HangUp();  // The peer's end notices, and fails, too.
}

// The peer is in the middle of a copy, and its processor cannot be stopped. It soon ends the copy, or dies. If it dies,
// its socket reports that when all of its threads are gone. (A peer hangs up in the thread that copies, so not in the
// middle of a copy.)
bool ShmChannel::Fence() {
  if (state_ != State::kFailed) End({Code::kUnavailable, "this end closed the channel"});
  queue_->Forget(this);
  if (!receive_.IsPlacing()) return true;
  doorbell_.Hear();
  return doorbell_.peer_is_gone();
}

}  // namespace erda::fabric::shm
