// Memory that is registered with the fabric: of an operation whose message is large, or of the caller for one value.
//
// RegisteredMemory owns its bytes and their registration. A Buffer::Memory also has a share of its fabric. The caller's
// Buffer and the operation that uses it share that memory. One thread at a time uses a buffer, as a client.
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
  // Makes registered memory. Does not zero it, since it may be as large as a segment.
  static Result<RegisteredMemory> Make(fabric::Fabric& fabric, size_t size);

  std::unique_ptr<std::byte[]> memory;
  std::span<std::byte> bytes;
  std::unique_ptr<fabric::Region> region;
};

}  // namespace erda::client

namespace erda {

// The buffer has room before the value for the bytes that a message or an object has there. So the value is sent and
// read in place.
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
  // In a forked child the registration belongs to the parent, and the pages may be missing. So the memory stays.
  ~Memory() {
    if (!birthplace.forked()) return;
    (void)registered.region.release();
    (void)registered.memory.release();
  }

  const Birthplace birthplace;
  std::shared_ptr<fabric::Fabric> fabric;  // that has registered the memory
  client::RegisteredMemory registered;
  std::span<std::byte> value;
  bool in_use = false;  // an operation uses it

  // Returns the value that an operation has read, at the place where the caller finds it. The value is there already in
  // most cases. An operation reads it elsewhere if the expected size was more than the buffer holds. After a deadline
  // the value is a few bytes farther.
  [[nodiscard]] Result<std::string_view> Take(std::string_view read) const;
  // Returns the bytes from `before_value` bytes before the value to the end.
  [[nodiscard]] std::span<std::byte> From(uint64_t before_value) const {
    return registered.bytes.subspan(static_cast<size_t>(value.data() - registered.bytes.data()) - before_value);
  }
};

}  // namespace erda

namespace erda::client {

// Makes a buffer for values of `value_bytes`, registered with this fabric.
[[nodiscard]] Result<std::shared_ptr<Buffer::Memory>> MakeBuffer(std::shared_ptr<fabric::Fabric> fabric,
                                                                 size_t value_bytes);
// Returns ok if an operation over this fabric may use the buffer now.
[[nodiscard]] Status CheckBuffer(const std::shared_ptr<Buffer::Memory>& buffer, const fabric::Fabric& fabric);

}  // namespace erda::client
