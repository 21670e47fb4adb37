#include "bench/schemes/server/extents.h"

#include <iterator>

namespace erda::schemes {

void Extents::Insert(uint64_t offset, uint64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void Extents::Erase(std::map<uint64_t, uint64_t>::iterator extent) {
  by_size_.erase({extent->second, extent->first});
  by_offset_.erase(extent);
}

void Extents::Add(uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return;
  free_bytes_ += bytes;
  const auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      Erase(before);
    }
  }
  if (after != by_offset_.end() && offset + bytes == after->first) {
    bytes += after->second;
    Erase(after);
  }
  Insert(offset, bytes);
}

std::optional<uint64_t> Extents::Take(uint64_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [size, offset] = *fit;
  Erase(by_offset_.find(offset));
  if (size > bytes) Insert(offset + bytes, size - bytes);
  free_bytes_ -= bytes;
  return offset;
}

}  // namespace erda::schemes
