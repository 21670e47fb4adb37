// The work for each operation of an shm channel: posting and receiving.
#include <algorithm>

#include "fabric/shm/channel.h"
#include "fabric/shm/copy.h"

namespace erda::fabric::shm {

namespace {

// Returns true if the request places bytes in the peer's memory.
bool IsWrite(const WorkRequest& work) {
  return work.kind == OpKind::kWrite || (work.kind == OpKind::kWriteImm && !work.local.empty());
}

// The bytes to prefetch for Reads after the one that is copied. With Reads of 1 KiB, 16 at a time, 8192 is 1.12 times
// as fast as 2048, and 4096 is 1.10 times as fast. 16384 is no faster than 8192.
constexpr size_t kBytesAhead = 8192;

// Reads bytes before any later operation does, since operations are executed in order. Pairs with the releasing stores
// of the thread that wrote the bytes.
void Fetch(std::span<std::byte> to, const std::byte* shared) {
  CopyFromShared(to.data(), shared, to.size());
  std::atomic_thread_fence(std::memory_order_acquire);
}

// Marks the time in which this end places bytes. The peer waits for its end before it uses its memory for something
// else.
class Placing {
 public:
  explicit Placing(Ring& ring) : ring_(ring) {}
  ~Placing() { End(); }
  Placing(const Placing&) = delete;
  Placing& operator=(const Placing&) = delete;
  // Returns false if the peer is gone.
  bool Begin() {
    begun_ = begun_ || ring_.BeginPlacing();
    return begun_;
  }
  void End() {
    if (begun_) ring_.EndPlacing();
    begun_ = false;
  }

 private:
  Ring& ring_;
  bool begun_ = false;
};

}  // namespace

Status ShmChannel::Post(std::span<const WorkRequest> batch) {
  if (auto status = CheckBatch(batch); !status.ok()) return status;
  bool sent = false;
  Placing placing(transmit_);
  size_t asked_for = 0;  // Requests of the batch whose bytes are on their way into the caches.
  size_t bytes_ahead = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const WorkRequest& work = batch[i];
    if (batch.size() > 1) {
      for (; asked_for < batch.size() && (asked_for <= i || bytes_ahead < kBytesAhead); ++asked_for) {
        bytes_ahead += Prefetch(batch[asked_for]);
      }
      if (work.kind == OpKind::kRead) bytes_ahead -= std::min(work.local.size(), kPrefetchBytesMax);
    }
    const bool failed = state_ == State::kFailed;  // By an earlier operation of this batch.
    // A peer that was killed has announced nothing in the ring.
    const bool too_late = !failed && IsWrite(work) && !(placing.Begin() && PeerLives());
    const bool permitted = !failed && !too_late && Execute(work);
    wrote_ |= work.kind == OpKind::kWrite || work.kind == OpKind::kWriteImm;
    if (permitted && !work.signaled && work.kind != OpKind::kRead) {
      sent |= work.kind != OpKind::kWrite;
      continue;
    }
    // An operation completes well only if the peer was there when it was executed. The memory of a peer that left is
    // still mapped here, but its bytes are out of date, and Writes to it come too late.
    const bool gone = too_late || (permitted && PeerIsGone());
    const bool executed = permitted && !gone;
    wrote_ = false;
    Completion completion;
    completion.channel = this;
    completion.kind = work.kind;
    completion.id = work.id;
    completion.imm = work.imm;
    if (executed) {
      completion.bytes = static_cast<uint32_t>(work.local.size());
      sent |= work.kind == OpKind::kWriteImm || work.kind == OpKind::kSend;
    } else {
      completion.code = failed || gone ? Code::kUnavailable : Code::kPermissionDenied;
    }
    queue_->Complete(completion);
    if (executed || failed) continue;
    state_ = State::kFailed;
    error_ = gone ? Status(Code::kUnavailable, address_ + ": the peer is gone")
                  : Status(Code::kPermissionDenied, address_ + ": the peer did not grant access to that memory");
  }
  placing.End();
  // Messages before the failure have been sent, so the peer must hear of them.
  if (sent && transmit_.Publish() && !RingDoorbell(socket_.get())) queue_->OweRing(this);
  if (state_ == State::kFailed) Fail(Status(error_));
  return {};
}

// The peer must have been there, as for a Read that completes in Post.
bool ShmChannel::ReadNow(std::span<std::byte> local, RemoteAddress remote) {
  if (state_ != State::kConnected) return false;
  const std::byte* from = RemoteBytes(remote, local.size(), Access::kRemoteRead);
  if (from == nullptr) return false;
  Fetch(local, from);
  const bool gone = PeerIsGone();
  wrote_ = false;
  return !gone;
}

Status ShmChannel::CheckBatch(std::span<const WorkRequest> batch) {
  if (state_ != State::kConnected) return {Code::kUnavailable, address_ + ": not connected"};
  uint32_t messages = 0;
  for (const WorkRequest& work : batch) {
    if (work.kind > OpKind::kSend) return {Code::kInvalidArgument, "this kind of operation cannot be posted"};
    if (work.kind == OpKind::kSend && work.local.size() > kSendBytesMax) {
      return {Code::kInvalidArgument, "a message has at most " + std::to_string(kSendBytesMax) + " bytes"};
    }
    messages += work.kind == OpKind::kWriteImm || work.kind == OpKind::kSend ? 1 : 0;
  }
  if (messages > 0 && transmit_.Room() < messages) return Status(Code::kResourceExhausted);
  return {};
}

std::byte* ShmChannel::RemoteBytes(RemoteAddress remote, size_t size, Access needed) const {
  if (remote.region >= peer_regions_.size()) return nullptr;
  const RemoteRegion& region = peer_regions_[remote.region];
  if (region.access < needed) return nullptr;
  if (remote.offset > region.size || size > region.size - remote.offset) return nullptr;
  return peer_memory_[remote.region]->bytes().data() + remote.offset;
}

// Returns the number of bytes that it starts to load.
size_t ShmChannel::Prefetch(const WorkRequest& work) const {
  if (work.kind != OpKind::kRead) return 0;
  if (const std::byte* remote = RemoteBytes(work)) PrefetchShared(remote, work.local.size());
  return std::min(work.local.size(), kPrefetchBytesMax);
}

bool ShmChannel::Execute(const WorkRequest& work) {
  if (work.kind == OpKind::kSend) {
    transmit_.Push({static_cast<uint32_t>(OpKind::kReceive), 0, static_cast<uint32_t>(work.local.size()), 0},
                   work.local);
    return true;
  }
  if (work.kind != OpKind::kWriteImm || !work.local.empty()) {
    std::byte* remote = RemoteBytes(work);
    if (remote == nullptr) return false;
    if (work.kind == OpKind::kRead) {
      Fetch(work.local, remote);
      return true;
    }
    // In order as well: nothing that follows is seen before this Write, and this Write is not seen before earlier
    // operations.
    std::atomic_thread_fence(std::memory_order_release);
    CopyToShared(remote, work.local.data(), work.local.size());
  }
  if (work.kind == OpKind::kWriteImm) {
    transmit_.Push({static_cast<uint32_t>(OpKind::kReceiveImm), work.imm, static_cast<uint32_t>(work.local.size()), 0},
                   {});
  }
  return true;
}

bool ShmChannel::HasMessage() {
  Descriptor descriptor{};
  return state_ == State::kConnected && (peer_gone_ || receive_.Peek(&descriptor) != Ring::Look::kEmpty);
}

size_t ShmChannel::Receive(std::span<Completion> out, std::deque<std::vector<std::byte>>* inbox) {
  if (state_ != State::kConnected) return 0;
  // The queue heard the end of the socket before this look into the ring, so the ring holds all messages that the peer
  // ever sent. Only the thread of the queue sets peer_gone_, and never in this function.
  const bool last = peer_gone_;
  size_t n = 0;
  while (n < out.size()) {
    Descriptor descriptor{};
    const Ring::Look look = receive_.Peek(&descriptor);
    if (look == Ring::Look::kEmpty) {
      if (last) Fail({Code::kUnavailable, address_ + ": the peer is gone"});
      break;
    }
    Completion& completion = out[n];
    completion = {};
    completion.channel = this;
    completion.kind = static_cast<OpKind>(descriptor.kind);
    completion.imm = descriptor.imm;
    completion.bytes = descriptor.bytes;
    const bool is_message = completion.kind == OpKind::kReceive && descriptor.bytes <= kSendBytesMax;
    if (look == Ring::Look::kNonsense || (!is_message && completion.kind != OpKind::kReceiveImm)) {
      peer_broke_rules_ = true;
      Fail({Code::kInternal, address_ + ": the peer wrote wrong numbers into the channel"});
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
  if (n > 0) heard_ = true;
  return n;
}

}  // namespace erda::fabric::shm
