// The memory work of a get, as if the fabric cost nothing. That work is to hash the key, fetch the object, verify it,
// compare the key, and give the value to the caller.
//
// Owns an object for each key. Only the measuring thread calls it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/floors/settings.h"
#include "erda/status.h"

namespace erda::floors {

using Key = std::array<char, kKeyBytes>;

class MemoryWork {
 public:
  // Makes the objects. Requires: the keys outlive this.
  void Prepare(std::span<const Key> keys, std::string_view value);
  // Does the work of a get of the i-th key, modulo the number of keys. Requires: Prepare was called.
  Status Get(uint64_t i);

 private:
  [[nodiscard]] std::string_view KeyAt(uint64_t i) const { return {keys_[i].data(), keys_[i].size()}; }

  std::span<const Key> keys_;
  uint64_t value_bytes_ = 0;
  uint64_t stride_ = 0;
  std::vector<std::byte> objects_;
  std::vector<std::byte> fetched_;
  std::vector<std::byte> read_;
};

}  // namespace erda::floors
