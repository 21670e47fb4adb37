// Requests on their way through a channel: those of the caller, and the channel's own.
// The thread of the channel's queue uses them.
#pragma once

#include <cstdint>

#include "fabric/fabric.h"

namespace erda::fabric::verbs {

// The origin of a request.
enum class Purpose : uint8_t {
  kCaller,
  kGreet,
  kTellCredit,
  kAskCredit,
  kKeepAlive,
  kOpenWindow,
  kCloseWindow,
  kLast  // The request after all others on a queue pair that has failed.
};

// A request that the queue pair has not received yet.
struct Request {
  WorkRequest work;
  uint32_t local_key = 0;
  Purpose purpose = Purpose::kCaller;
  uint32_t window = 0;  // Of kOpenWindow and kCloseWindow: the window's key.
};

// A request in the queue pair: everything that its completion needs.
struct PostedRequest {
  uint64_t id = 0;
  uint32_t bytes = 0;
  uint32_t window = 0;
  OpKind kind = OpKind::kRead;
  bool signaled = false;  // The caller wants its completion.
  Purpose purpose = Purpose::kCaller;
};

[[nodiscard]] inline PostedRequest PostedOf(const Request& request) {
  const WorkRequest& work = request.work;
  return {work.id,   static_cast<uint32_t>(work.local.size()),    request.window,
          work.kind, work.signaled || work.kind == OpKind::kRead, request.purpose};
}

[[nodiscard]] inline bool IsMessage(OpKind kind) { return kind == OpKind::kWriteImm || kind == OpKind::kSend; }

// Returns true if the caller receives a completion when the request fails.
[[nodiscard]] inline bool IsTold(Purpose purpose) {
  return purpose == Purpose::kCaller || purpose == Purpose::kCloseWindow;
}

// Returns the completion that the caller receives.
[[nodiscard]] inline Completion CompletionOf(Channel* channel, const PostedRequest& posted, Code code) {
  Completion completion;
  completion.channel = channel;
  completion.kind = posted.purpose == Purpose::kCloseWindow ? OpKind::kWindowClosed : posted.kind;
  completion.code = code;
  completion.id = posted.id;
  completion.bytes = posted.bytes;
  return completion;
}

}  // namespace erda::fabric::verbs
