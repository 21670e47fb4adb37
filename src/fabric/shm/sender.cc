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
    if (!BeginPlacing()) return Code::kUnavailable;
    if (const Code code = sender_.Place(work); code != Code::kOk) return code;
  }
  if (work.kind == OpKind::kWriteImm) ring.Push({static_cast<uint32_t>(OpKind::kReceiveImm), work.imm, bytes, 0}, {});
  return Code::kOk;
}

bool Sender::Send(const WorkRequest& work) {
  if (ring_.Room() == 0) return false;
  if (!work.local.empty()) {
    if (!ring_.BeginPlacing()) return false;
    const Code code = Place(work);
    ring_.EndPlacing();
    if (code != Code::kOk) return false;
  }
  wrote_ = true;
  const auto bytes = static_cast<uint32_t>(work.local.size());
  ring_.Push({static_cast<uint32_t>(OpKind::kReceiveImm), work.imm, bytes, 0}, {});
  return true;
}

}  // namespace erda::fabric::shm
