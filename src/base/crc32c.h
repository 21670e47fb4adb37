// CRC32C (Castagnoli), by Intel ISA-L. For short pieces, by the processor's instruction; without the instruction, by a
// table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace erda {

// Returns the checksum of the bytes that `crc` covers, followed by these bytes. 0 starts a checksum: Crc32c(Crc32c(0,
// a), b) == Crc32c(0, a + b).
[[nodiscard]] uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes);

// Returns the checksum of two ranges, one after the other. `crc` covers the first range. `crc_behind`, started with 0,
// covers the second one, which has `bytes` bytes.
[[nodiscard]] uint32_t Crc32cOfBoth(uint32_t crc, uint32_t crc_behind, uint64_t bytes);

// Computes the same as Crc32c by the table alone, on any processor.
[[nodiscard]] uint32_t Crc32cByTable(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace erda
