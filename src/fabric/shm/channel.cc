// Setting up, failing and closing an shm channel. channel_datapath.cc has the work for each operation.
#include "fabric/shm/channel.h"

#include <utility>

namespace erda::fabric::shm {

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

// After any report of the socket, the queue must look into the ring again: a parked channel may have a message there.
void ShmChannel::OnSocket() {
  if (state_ == State::kAsking) return OnAnswer();
  if (state_ == State::kConnected) HearDoorbell();
  queue_->Unpark(this);
}

// An honest peer rings at most once for each message, after it published that. A peer that rings more often tries to
// cost others time.
void ShmChannel::HearDoorbell() {
  doorbell_.Hear();
  if (doorbell_.heard() > receive_.consumed() + receive_.depth()) Blame("rings the doorbell without a message");
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
