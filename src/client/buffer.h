// Memory that is registered with the fabric: of an operation whose message is large, and of the caller's, for one
// value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/birthplace.h"
#include "base/bytes.h"
#include "erda/client.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {

struct RegisteredMemory {
  // Not zeroed: it may be a whole segment.
  static Result<RegisteredMemory> Make(fabric::Fabric& fabric, size_t size);

  std::unique_ptr<std::byte[]> memory;
  std::span<std::byte> bytes;
  std::unique_ptr<fabric::Region> region;
};

}  // namespace erda::client

namespace erda {

// There is room before the value for what a message or an object has there: so it is sent and read where it is.
//   +----------------------------------------------------+---------------+---------------+
//   | kLead: ends with request or header, key, checksum  | value         | kTail         |
//   +----------------------------------------------------+---------------+---------------+
struct Buffer::Memory {
  static constexpr uint64_t kLead = AlignUp(
      std::max(format::InlineValueOffset(format::kKeyBytesMax), format::ValueOffset(format::kKeyBytesMax)), kCacheLine);
  // Objects end with a granule, and the first Read of one is some bytes long.
  static constexpr uint64_t kTail = 2 * kCacheLine;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  // In a child of a fork the fabric's knowledge of it is the parent's, and perhaps its pages are not there: it stays.
  ~Memory() {
    if (!birthplace.forked()) return;
    (void)registered.region.release();
    (void)registered.memory.release();
  }

  const Birthplace birthplace;
  std::shared_ptr<fabric::Fabric> fabric;  // that knows it
  client::RegisteredMemory registered;
  std::span<std::byte> value;
  bool in_use = false;  // by an operation

  // The value that an operation has read, as the caller finds it. It is in its place already, unless it was read
  // elsewhere: what was said of its size was more than the buffer holds. After a deadline it is a few bytes farther.
  [[nodiscard]] Result<std::string_view> Take(std::string_view read) const;
  // From so far before the value to the end.
  [[nodiscard]] std::span<std::byte> From(uint64_t before_value) const {
    return registered.bytes.subspan(static_cast<size_t>(value.data() - registered.bytes.data()) - before_value);
  }
};

}  // namespace erda

namespace erda::client {

// A buffer for values of so many bytes, which this fabric knows.
[[nodiscard]] Result<std::shared_ptr<Buffer::Memory>> MakeBuffer(std::shared_ptr<fabric::Fabric> fabric,
                                                                 size_t value_bytes);
// Whether an operation over this fabric may use the buffer now.
[[nodiscard]] Status CheckBuffer(const std::shared_ptr<Buffer::Memory>& buffer, const fabric::Fabric& fabric);

}  // namespace erda::client
