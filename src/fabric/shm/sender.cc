#include "fabric/shm/sender.h"

#include <string>

namespace erda::fabric::shm {

Status Sender::Check(std::span<const WorkRequest> batch) {
  uint32_t messages = 0;
  for (const WorkRequest& work : batch) {
    if (work.kind > OpKind::kSend) return {Code::kInvalidArgument, "this kind of operation cannot be posted"};
    if (work.kind == OpKind::kSend && work.local.size() > kSendBytesMax) {
      return {Code::kInvalidArgument, "a message has at most " + std::to_string(kSendBytesMax) + " bytes"};
    }
    messages += work.kind == OpKind::kWriteImm || work.kind == OpKind::kSend ? 1 : 0;
  }
  if (messages > 0 && ring_.Room() < messages) return Status(Code::kResourceExhausted);
  return {};
}

Code Sender::Batch::Execute(const WorkRequest& work) {
  const auto bytes = static_cast<uint32_t>(work.local.size());
  Ring& ring = sender_.ring_;
  if (work.kind == OpKind::kSend) {
    ring.Push({static_cast<uint32_t>(OpKind::kReceive), 0, bytes, 0}, work.local);
    return Code::kOk;
  }
  if (work.kind == OpKind::kRead) return sender_.Read(work.local, work.remote) ? Code::kOk : Code::kPermissionDenied;
  sender_.wrote_ = true;
  if (work.kind == OpKind::kWrite || !work.local.empty()) {
    // A peer that was killed has announced nothing in the ring.
    if (!BeginPlacing() || !sender_.PeerLives()) return Code::kUnavailable;
    std::byte* to = sender_.memory_.Find(work.remote, work.local.size(), Access::kRemoteReadWrite);
    if (to == nullptr) return Code::kPermissionDenied;
    // In order as well: nothing that follows is seen before this Write, and this Write is not seen before earlier
    // operations.
    std::atomic_thread_fence(std::memory_order_release);
    CopyToShared(to, work.local.data(), work.local.size());
  }
  if (work.kind == OpKind::kWriteImm) ring.Push({static_cast<uint32_t>(OpKind::kReceiveImm), work.imm, bytes, 0}, {});
  return Code::kOk;
}

}  // namespace erda::fabric::shm
