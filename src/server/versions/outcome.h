// The result of a request to the versions of a shard. A value.
#pragma once

#include <cstdint>

#include "erda/status.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::server {

// Stands for the head of a put that is refused because no region is free for any head.
inline constexpr uint32_t kAnyHead = UINT32_MAX;

// The code, and the other contents of the reply.
struct Outcome {
  Code code = Code::kOk;
  format::Reason reason = format::Reason::kNone;
  format::LogAddress address;
  uint32_t head = 0;
  format::ObjectHeader header{};
  uint32_t generation = 0;  // of the region of `address`
  uint64_t number = 0;      // as in format::Reply
};

}  // namespace erda::server
