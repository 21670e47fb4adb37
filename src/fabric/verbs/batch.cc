#include "fabric/verbs/batch.h"

#include <string>

namespace erda::fabric::verbs {

Status Batch::Take(std::span<const WorkRequest> works, LocalKeyCopy& keys) {
  requests_.clear();
  messages_ = 0;
  for (const WorkRequest& work : works) {
    if (work.kind > OpKind::kSend) return {Code::kInvalidArgument, "this kind of operation cannot be posted"};
    if (work.kind == OpKind::kSend && work.local.size() > kSendBytesMax) {
      return {Code::kInvalidArgument, "a message has at most " + std::to_string(kSendBytesMax) + " bytes"};
    }
    if (work.local.size() > UINT32_MAX >> 1) {
      return {Code::kInvalidArgument, "an operation of 2 GiB or more cannot be posted"};
    }
    uint32_t key = 0;
    if (!work.local.empty() && !last_key_.Find(keys, work.local, work.kind == OpKind::kRead, &key)) {
      return {Code::kInvalidArgument, "the local bytes of an operation are not in a registered region"};
    }
    if (IsMessage(work.kind)) ++messages_;
    requests_.push_back({work, key, Purpose::kCaller, 0});
  }
  return {};
}

}  // namespace erda::fabric::verbs
