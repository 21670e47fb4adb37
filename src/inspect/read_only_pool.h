// A pool's bytes, mapped for reading only. The object owns the mapping, and a shared lock on the file. Any thread may
// use it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::inspect {

class ReadOnlyPool {
 public:
  // Opens a file or a DAX device. Returns kUnavailable if a server has it open. While the object exists, no server can
  // open the pool, and other programs can read it.
  static Result<std::unique_ptr<ReadOnlyPool>> Open(const std::string& path);

  ReadOnlyPool(const ReadOnlyPool&) = delete;
  ReadOnlyPool& operator=(const ReadOnlyPool&) = delete;
  ~ReadOnlyPool();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  ReadOnlyPool(UniqueFd file, std::span<const std::byte> bytes) : file_(std::move(file)), bytes_(bytes) {}

  UniqueFd file_;  // Holds the lock.
  std::span<const std::byte> bytes_;
};

}  // namespace erda::inspect
