// Registered memory for one value of the caller's, with room before it for what a message or an object has there: so a
// value is sent and read where it is.
//   +----------------------------------------------------+---------------+---------------+
//   | kLead: ends with request or header, key, checksum  | value         | kTail         |
//   +----------------------------------------------------+---------------+---------------+
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

struct BufferMemory {
  static constexpr uint64_t kLead = AlignUp(
      std::max(format::InlineValueOffset(format::kKeyBytesMax), format::ValueOffset(format::kKeyBytesMax)), kCacheLine);
  // Objects end with a granule, and the first Read of one is some bytes long.
  static constexpr uint64_t kTail = 2 * kCacheLine;

  std::shared_ptr<fabric::Fabric> fabric;  // that knows it
  std::unique_ptr<std::byte[]> memory;
  std::span<std::byte> bytes;  // all of it
  std::unique_ptr<fabric::Region> region;
  std::span<std::byte> value;
  bool in_use = false;  // by an operation

  // From so far before the value to the end.
  [[nodiscard]] std::span<std::byte> From(uint64_t before_value) const {
    return bytes.subspan(static_cast<size_t>(value.data() - bytes.data()) - before_value);
  }
};

}  // namespace erda::client
