// The work for each operation of an shm channel: posting and receiving. channel.cc has the rest of the class.
#include <algorithm>

#include "fabric/shm/channel.h"
#include "fabric/shm/copy.h"

namespace erda::fabric::shm {

namespace {

// Starts to load the bytes of a batch's Reads before they are copied.
class ReadAhead {
 public:
  ReadAhead(const PeerMemory& memory, std::span<const WorkRequest> batch) : memory_(memory), batch_(batch) {}
  // The request with this index is executed next.
  void ComeTo(size_t i) {
    for (; next_ < batch_.size() && (next_ <= i || bytes_ahead_ < kBytesAhead); ++next_) Prefetch(batch_[next_]);
    if (batch_[i].kind == OpKind::kRead) bytes_ahead_ -= std::min(batch_[i].local.size(), kPrefetchBytesMax);
  }

 private:
  // With Reads of 1 KiB, 16 at a time, 8192 is 1.12 times as fast as 2048, and 4096 is 1.10 times as fast. 16384 is no
  // faster than 8192.
  static constexpr size_t kBytesAhead = 8192;

  void Prefetch(const WorkRequest& work) {
    if (work.kind != OpKind::kRead) return;
    const size_t size = work.local.size();
    if (const std::byte* remote = memory_.Find(work.remote, size, Access::kRemoteRead)) PrefetchShared(remote, size);
    bytes_ahead_ += std::min(size, kPrefetchBytesMax);
  }

  const PeerMemory& memory_;
  const std::span<const WorkRequest> batch_;
  size_t next_ = 0;  // The first request whose bytes are not on their way into the caches.
  size_t bytes_ahead_ = 0;
};

}  // namespace

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
    const bool gone = failure == Code::kUnavailable;
    EndAndTell({failure, address_ + (gone ? ": the peer is gone" : ": the peer did not grant access to that memory")});
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
      if (last) FailSincePeerIsGone();
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

}  // namespace erda::fabric::shm
