// What is secret is computed by libsodium, behind these few names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace erda {

using Digest = std::array<uint8_t, 32>;

// Of all parts, one behind the other.
[[nodiscard]] Digest HmacSha256(std::span<const std::byte> key,
                                std::initializer_list<std::span<const std::byte>> parts);
// Takes as long whether and wherever they differ. REQUIRES: equally long.
[[nodiscard]] bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b);
// Bytes that nobody can foretell.
void FillRandom(std::span<std::byte> bytes);

}  // namespace erda
