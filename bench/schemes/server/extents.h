// Free space in memory. The index names all used space, so nothing of this class is persistent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace erda::schemes {

class Extents {
 public:
  // REQUIRES: no byte of it is free.
  void Add(uint64_t offset, uint64_t bytes);
  // Takes from the smallest extent that is large enough. Returns nothing if none is.
  std::optional<uint64_t> Take(uint64_t bytes);
  [[nodiscard]] uint64_t free_bytes() const { return free_bytes_; }
  [[nodiscard]] uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void Insert(uint64_t offset, uint64_t bytes);
  void Erase(std::map<uint64_t, uint64_t>::iterator extent);

  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // Size, offset.
  uint64_t free_bytes_ = 0;
};

}  // namespace erda::schemes
