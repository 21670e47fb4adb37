// The cryptography of Erda, computed by libsodium.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace erda {

using Digest = std::array<uint8_t, 32>;

// Returns the HMAC of all parts, one after the other.
[[nodiscard]] Digest HmacSha256(std::span<const std::byte> key,
                                std::initializer_list<std::span<const std::byte>> parts);
// Compares in a time that does not depend on the bytes. REQUIRES: a.size() == b.size().
[[nodiscard]] bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b);
// Fills the range with bytes that nobody can predict.
void FillRandom(std::span<std::byte> bytes);

}  // namespace erda
