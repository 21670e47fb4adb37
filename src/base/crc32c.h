// CRC32C (Castagnoli), by Intel ISA-L; short pieces by the processor's instruction, or by a table if it has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace erda {

// The checksum of bytes that follow what `crc` covers; 0 begins. Crc32c(Crc32c(0, a), b) == Crc32c(0, a + b).
[[nodiscard]] uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes);

// Of what `crc` covers and `bytes` more bytes behind it, of which the checksum, begun with 0, is `crc_behind`.
[[nodiscard]] uint32_t Crc32cOfBoth(uint32_t crc, uint32_t crc_behind, uint64_t bytes);

// The same as Crc32c, by the table alone, on any processor.
[[nodiscard]] uint32_t Crc32cByTable(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace erda
