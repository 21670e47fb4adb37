// Copies and compares keys. Most keys have 8 to 16 bytes: two words then take the place of a call. Any thread
// may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes.h"

namespace erda::client {

// Returns true if two words cover a key of this size.
[[nodiscard]] inline bool IsTwoWords(size_t size) { return size - sizeof(uint64_t) <= sizeof(uint64_t); }

[[gnu::always_inline]] inline void CopyKey(void* to, std::string_view key) {
  if (!IsTwoWords(key.size())) {
    std::memcpy(to, key.data(), key.size());
    return;
  }
  const size_t last_at = key.size() - sizeof(uint64_t);
  const auto first = LoadAs<uint64_t>(AsBytes(key));
  const auto last = LoadAs<uint64_t>(AsBytes(key).subspan(last_at));
  std::memcpy(to, &first, sizeof(first));
  std::memcpy(static_cast<std::byte*>(to) + last_at, &last, sizeof(last));
}

[[nodiscard]] inline bool SameKey(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (!IsTwoWords(a.size())) return a == b;
  const auto word = [](std::string_view key, size_t at) { return LoadAs<uint64_t>(AsBytes(key).subspan(at)); };
  const size_t last_at = a.size() - sizeof(uint64_t);
  return word(a, 0) == word(b, 0) && word(a, last_at) == word(b, last_at);
}

}  // namespace erda::client
