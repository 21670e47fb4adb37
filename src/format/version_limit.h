// The word of a shard's record that holds the version limit, a number above all its versions. It is a CheckedWord of
// the limit in strides. A flipped bit must not make versions repeat.
#pragma once

#include <cstdint>
#include <optional>

#include "format/superblock.h"

namespace erda::format {

// A shard writes its version limit once for this number of versions.
inline constexpr uint64_t kVersionStride = 1 << 20;

// REQUIRES: a multiple of the stride.
constexpr uint64_t VersionLimitWord(uint64_t limit) { return CheckedWord::Of(limit / kVersionStride).raw(); }
// nullopt: the word is damaged, or no shard gets there. 0: no version was ever given out.
constexpr std::optional<uint64_t> VersionLimitIn(uint64_t word) {
  const CheckedWord strides(word);
  if (strides.damaged() || strides.number() > UINT64_MAX / 2 / kVersionStride) return std::nullopt;
  return strides.number() * kVersionStride;
}

}  // namespace erda::format
