// What a request to the versions of a shard comes to.
#pragma once

#include <cstdint>

#include "erda/status.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::server {

// The head of a put that is refused for want of a region, whatever head the region would be in.
inline constexpr uint32_t kAnyHead = UINT32_MAX;

// The code, and what the reply says beside it.
struct Outcome {
  Code code = Code::kOk;
  format::Reason reason = format::Reason::kNone;
  format::LogAddress address;
  uint32_t head = 0;
  format::ObjectHeader header{};
  uint32_t generation = 0;  // of the region of `address`
  uint64_t number = 0;      // the sum that an increment came to
};

}  // namespace erda::server
