// A disk, or a file on one, with a volatile cache. The journal writes its records there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "erda/status.h"

namespace erda::journal {

// A write counts only after a Flush that began later has returned ok. Until then a power cut keeps any part of it, and
// keeps later writes without earlier ones. After an error of Write or Flush nothing is known about the writes since the
// last Flush, and a later ok says nothing about them.
//
// Any thread may call it. Threads that write at the same time write to different blocks.
class Disk {
 public:
  // Offsets, sizes and the addresses of buffers are multiples of this.
  static constexpr uint64_t kBlock = 4096;

  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  // REQUIRES, for both: the range is aligned, and ends within size().
  virtual Status Read(uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status Write(uint64_t offset, std::span<const std::byte> from) = 0;
  virtual Status Flush() = 0;
  [[nodiscard]] virtual uint64_t size() const = 0;
};

}  // namespace erda::journal
