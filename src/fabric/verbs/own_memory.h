// Registered memory of the fabric itself: greetings, receives, credit pages.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <utility>

#include "erda/status.h"

namespace erda::fabric::verbs {

class Device;

// Owns the memory and its registration. REQUIRES: the device outlives it. The thread of its owner's queue calls it.
class OwnMemory {
 public:
  // Returns zeroed memory. `access` holds flags of ibv_access_flags.
  static Result<OwnMemory> Create(Device& device, size_t bytes, unsigned access);
  OwnMemory() = default;
  OwnMemory(OwnMemory&& other) noexcept { *this = std::move(other); }
  OwnMemory& operator=(OwnMemory&& other) noexcept;
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] ibv_mr* mr() const { return mr_; }

 private:
  std::byte* data_ = nullptr;
  ibv_mr* mr_ = nullptr;
};

}  // namespace erda::fabric::verbs
