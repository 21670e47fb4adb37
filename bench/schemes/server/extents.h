// Free space in memory that nothing else tells of: what is taken follows from the index, so none of this is persistent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace erda::schemes {

class Extents {
 public:
  // REQUIRES: nothing of it is free.
  void Add(uint64_t offset, uint64_t bytes);
  // From the smallest extent that is large enough.
  std::optional<uint64_t> Take(uint64_t bytes);
  [[nodiscard]] uint64_t free_bytes() const { return free_bytes_; }
  [[nodiscard]] uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void Insert(uint64_t offset, uint64_t bytes);
  void Erase(std::map<uint64_t, uint64_t>::iterator extent);

  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // size, offset
  uint64_t free_bytes_ = 0;
};

}  // namespace erda::schemes
