// The word of a shard's record that holds the version limit, a number above all its versions. It is a CheckedWord of
// the limit in strides. A flipped bit must not make versions repeat.
#pragma once

#include <cstdint>
#include <optional>

#include "format/superblock.h"

namespace erda::format {

// A shard writes its version limit once for each stride of versions.
inline constexpr uint64_t kVersionStride = 1 << 20;

// REQUIRES: the limit is a multiple of the stride.
constexpr uint64_t VersionLimitWord(uint64_t limit) { return CheckedWord::Of(limit / kVersionStride).raw(); }
// Returns the limit, or 0 if the shard never gave out a version. Returns nullopt if the word is damaged, or if its
// limit is out of the reach of any shard.
constexpr std::optional<uint64_t> VersionLimitIn(uint64_t word) {
  const CheckedWord strides(word);
  if (strides.damaged() || strides.number() > UINT64_MAX / 2 / kVersionStride) return std::nullopt;
  return strides.number() * kVersionStride;
}

}  // namespace erda::format
