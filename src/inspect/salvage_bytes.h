// The bytes of one shard of the pool that is salvaged, by their places. The file may be shorter than the pool. Does not
// judge the bytes. Any thread may use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/object.h"
#include "inspect/salvage_frame.h"

namespace erda::inspect {

class SalvageBytes {
 public:
  // REQUIRES: the frame outlives this object.
  SalvageBytes(std::span<const std::byte> pool, const SalvageFrame& frame, uint32_t shard)
      : pool_(pool), frame_(frame), shard_(shard) {}

  [[nodiscard]] const std::span<const std::byte>& pool() const { return pool_; }
  [[nodiscard]] const format::Geometry& geometry() const { return frame_.geometry; }
  [[nodiscard]] uint32_t seed() const { return frame_.seed; }
  [[nodiscard]] const std::optional<HashSeed>& hash_seed() const { return frame_.hash_seed; }
  [[nodiscard]] uint32_t shard() const { return shard_; }
  [[nodiscard]] uint32_t first_head() const { return shard_ * geometry().heads_per_shard; }

  // Returns the bytes from an offset in the pool to the end of the segment, or of the file. Empty if the file does not
  // have them.
  [[nodiscard]] std::span<const std::byte> ToSegmentEnd(uint64_t offset) const {
    const format::Geometry& g = geometry();
    if (offset >= pool_.size() || offset < g.regions_offset) return {};
    const uint64_t left = g.segment_size - (offset - g.regions_offset) % g.segment_size;
    return pool_.subspan(offset, std::min(left, pool_.size() - offset));
  }
  // REQUIRES: an object whose header verified is at that offset in the pool.
  [[nodiscard]] format::ObjectHeader HeaderAt(uint64_t offset) const {
    return LoadAs<format::ObjectHeader>(ToSegmentEnd(offset));
  }
  [[nodiscard]] std::string_view KeyAt(uint64_t offset) const {
    const format::ObjectHeader header = HeaderAt(offset);
    return AsString(ToSegmentEnd(offset).subspan(header.key_offset(), header.key_size));
  }

 private:
  const std::span<const std::byte> pool_;
  const SalvageFrame& frame_;
  const uint32_t shard_;
};

}  // namespace erda::inspect
