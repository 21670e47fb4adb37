// CRC32C run backwards: the value of a checksum before the last bytes that it covers. So an object tells the pool's
// seed and the generation of its region with which the server wrote it, even if nothing else tells them.
//
// CoveredBytes owns a copy of the bytes. Any thread may call these functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "format/object.h"

namespace erda::inspect {

// Returns the checksum for which Crc32c(Crc32cBefore(crc, bytes), bytes) == crc.
[[nodiscard]] uint32_t Crc32cBefore(uint32_t crc, std::span<const std::byte> bytes);

// The bytes that format::HeaderCrc covers after the pool's seed: head and address (8 bytes), generation (4), header and
// label.
class CoveredBytes {
 public:
  static constexpr size_t kPlaceBytes = 8;
  static constexpr size_t kGenerationBytes = 4;

  CoveredBytes(const format::ObjectHeader& header, std::string_view key, uint64_t deadline, uint32_t head,
               format::LogAddress address, uint32_t generation);
  [[nodiscard]] std::span<const std::byte> all() const { return std::span(bytes_).first(size_); }
  [[nodiscard]] std::span<const std::byte> after_generation() const {
    return all().subspan(kPlaceBytes + kGenerationBytes);
  }

 private:
  std::array<std::byte, 48 + format::kKeyBytesMax> bytes_{};
  size_t size_ = 0;
};

}  // namespace erda::inspect
