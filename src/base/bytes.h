// Small helpers for bytes, sizes and errno.
#pragma once

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "erda/status.h"

namespace erda {

// All structures on NVM and in messages are little-endian and used in place.
static_assert(std::endian::native == std::endian::little, "Erda's formats are little-endian");
static_assert(sizeof(void*) == 8, "Erda needs a 64-bit address space");

inline constexpr size_t kCacheLine = 64;

constexpr uint64_t AlignUp(uint64_t n, uint64_t power_of_two) { return (n + power_of_two - 1) & ~(power_of_two - 1); }
constexpr uint64_t AlignDown(uint64_t n, uint64_t power_of_two) { return n & ~(power_of_two - 1); }

inline std::span<const std::byte> AsBytes(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view AsString(std::span<const std::byte> s) {
  return {reinterpret_cast<const char*>(s.data()), s.size()};
}

[[nodiscard]] bool IsZero(std::span<const std::byte> bytes);

// Returns the bytes of one format structure.
template <class T>
std::span<const std::byte> BytesOf(const T& t) {
  static_assert(std::has_unique_object_representations_v<T>, "padding would leak into the format");
  return std::as_bytes(std::span<const T, 1>(&t, 1));
}

// Reads a format structure from bytes at any alignment. REQUIRES: from.size() >= sizeof(T).
template <class T>
T LoadAs(std::span<const std::byte> from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T t;
  std::memcpy(&t, from.data(), sizeof(T));
  return t;
}

// Returns a message such as "cannot open /x: Permission denied", with the error number and the code that fits it.
inline Status ErrnoStatus(std::string what, int error = errno) {
  Code code = Code::kInternal;
  if (error == EACCES || error == EPERM) code = Code::kPermissionDenied;
  if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG || error == EISDIR || error == EFBIG)
    code = Code::kInvalidArgument;
  if (error == ECONNREFUSED || error == ECONNRESET || error == EPIPE) code = Code::kUnavailable;
  if (error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE || error == EDQUOT)
    code = Code::kResourceExhausted;
  return {code, what.append(": ").append(std::strerror(error)), error};
}

}  // namespace erda
