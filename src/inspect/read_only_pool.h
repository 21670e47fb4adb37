// A pool's bytes for someone who only looks: nothing of it can be written through this mapping.
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
  // A file or a DAX device. kUnavailable: a server has it open. While this is there no server can open it, and others
  // who only look can.
  static Result<std::unique_ptr<ReadOnlyPool>> Open(const std::string& path);

  ReadOnlyPool(const ReadOnlyPool&) = delete;
  ReadOnlyPool& operator=(const ReadOnlyPool&) = delete;
  ~ReadOnlyPool();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  ReadOnlyPool(UniqueFd file, std::span<const std::byte> bytes) : file_(std::move(file)), bytes_(bytes) {}

  UniqueFd file_;  // holds the lock
  std::span<const std::byte> bytes_;
};

}  // namespace erda::inspect
