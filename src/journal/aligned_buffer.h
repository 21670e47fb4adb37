// Memory that a disk can read and write directly.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "journal/disk.h"

namespace erda::journal {

// Zeroes, aligned to a block of the disk.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t size)
      : bytes_(static_cast<std::byte*>(::operator new(size, std::align_val_t(Disk::kBlock)))), size_(size) {
    std::memset(bytes_.get(), 0, size);
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t(Disk::kBlock)); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  size_t size_;
};

}  // namespace erda::journal
