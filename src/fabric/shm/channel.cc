// Setting up, failing and closing an shm channel. channel_datapath.cc has the work for each operation.
#include "fabric/shm/channel.h"

#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"

namespace erda::fabric::shm {

ShmChannel::ShmChannel(ShmQueue* queue, MemoryMaps* maps, std::string address, UniqueFd socket, SharedMemory rings,
                       uint32_t message_depth)
    : queue_(queue),
      maps_(maps),
      address_(std::move(address)),
      state_(State::kAsking),
      socket_(std::move(socket)),
      own_rings_(std::move(rings)) {
  SetUpRings(own_rings_.bytes().data(), message_depth, true);
}

ShmChannel::ShmChannel(ShmQueue* queue, UniqueFd socket, const Greeting& ask, std::shared_ptr<Mapping> rings,
                       std::vector<std::shared_ptr<Mapping>> regions, std::shared_ptr<Beacon> beacon)
    : queue_(queue),
      maps_(nullptr),
      address_("the client"),
      state_(State::kConnected),
      socket_(std::move(socket)),
      mapped_rings_(std::move(rings)),
      own_beacon_(std::move(beacon)) {
  SetUpRings(mapped_rings_->bytes().data(), ask.message_depth, false);
  TakePeer(ask, std::move(regions));
}

ShmChannel::~ShmChannel() {
  receive_.Leave();
  queue_->Remove(this);
}

void ShmChannel::SetUpRings(std::byte* memory, uint32_t depth, bool asking) {
  // The connecting end sends in the first ring.
  Ring first(memory, depth);
  Ring second(memory + Ring::Bytes(depth), depth);
  transmit_ = asking ? first : second;
  receive_ = asking ? second : first;
}

void ShmChannel::TakePeer(const Greeting& greeting, std::vector<std::shared_ptr<Mapping>> regions) {
  peer_greeting_ = greeting;
  peer_memory_ = std::move(regions);
  for (uint32_t i = 0; i < greeting.regions; ++i) {
    peer_regions_.push_back({greeting.region_sizes[i], static_cast<Access>(greeting.region_access[i])});
  }
}

// After any report of the socket, the queue must look into the ring again: a parked channel may have a message there.
void ShmChannel::OnSocket() {
  if (state_ == State::kAsking) return OnAnswer();
  if (state_ == State::kConnected) HearSocket();
  queue_->Unpark(this);
}

// An honest peer rings at most once for each message, after it published that. A peer that rings more often tries to
// cost others time.
void ShmChannel::HearSocket() {
  peer_gone_ = !HearDoorbell(socket_.get(), &rings_);
  if (rings_ <= receive_.consumed() + receive_.depth()) return;
  peer_broke_rules_ = true;
  Fail({Code::kInternal, address_ + ": the peer rings the doorbell without a message"});
}

void ShmChannel::OnAnswer() {
  Greeting answer;
  std::vector<UniqueFd> fds;
  Status status = ReceiveGreeting(socket_.get(), &answer, &fds);
  if (status.code() == Code::kTimeout) return;
  if (!status.ok()) return Fail({status.code(), address_ + ": " + std::string(status.message())});
  if (answer.kind == Greeting::kReject) {
    peer_greeting_ = answer;
    return Fail({Code::kPermissionDenied, address_ + ": refused by the server"});
  }
  if (answer.kind != Greeting::kAccept || fds.size() != 1 + answer.regions) {
    return Fail({Code::kInvalidArgument, address_ + ": the server does not speak this version of the shm fabric"});
  }
  auto beacon = maps_->Map(fds[0], Beacon::kBytes, false, MemoryMaps::Trust::kPeerIsTrusted);
  if (!beacon.ok()) return Fail({beacon.status().code(), address_ + ": " + std::string(beacon.status().message())});
  std::vector<std::shared_ptr<Mapping>> regions;
  for (uint32_t i = 0; i < answer.regions; ++i) {
    const bool writable = answer.region_access[i] == static_cast<uint32_t>(Access::kRemoteReadWrite);
    auto mapping = maps_->Map(fds[1 + i], answer.region_sizes[i], writable, MemoryMaps::Trust::kPeerIsTrusted);
    if (!mapping.ok())
      return Fail({mapping.status().code(), address_ + ": " + std::string(mapping.status().message())});
    regions.push_back(*std::move(mapping));
  }
  peer_beacon_ = *std::move(beacon);
  TakePeer(answer, std::move(regions));
  state_ = State::kConnected;
  --queue_->asking_;
  queue_->CompleteConnected(this);
}

void ShmChannel::End() {
  if (state_ == State::kAsking) --queue_->asking_;
  state_ = State::kFailed;
  closed_reported_ = true;
  receive_.Leave();
  queue_->Unwatch(this);
  HangUp(socket_.get());  // The peer's end notices, and fails, too.
}

// The peer is in the middle of a copy, and its processor cannot be stopped. It soon ends the copy, or dies. If it dies,
// its socket reports that when all of its threads are gone. (A peer hangs up in the thread that copies, so not in the
// middle of a copy.)
bool ShmChannel::Fence() {
  if (!fencing_) {
    fencing_ = true;
    if (!closed_reported_) {
      End();
      error_ = {Code::kUnavailable, "this end closed the channel"};
    }
    queue_->Forget(this);
  }
  return !receive_.IsPlacing() || !HearDoorbell(socket_.get(), &rings_);
}

// Operations complete when they are posted, so there is nothing to flush.
void ShmChannel::Fail(Status error) {
  if (closed_reported_) return;
  End();
  error_ = std::move(error);
  Completion completion;
  completion.channel = this;
  completion.kind = OpKind::kClosed;
  completion.code = error_.code();
  queue_->Complete(completion);
}

}  // namespace erda::fabric::shm
