// Examples of the formats' structures, which their tests share.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/object.h"
#include "format/superblock.h"

namespace erda::format {

// Returns the bytes in lower-case hex, 16 in a line: "45 52 44 41 ...".
std::string Hex(std::span<const std::byte> bytes);
// Returns the same text for a literal. Blanks and line ends do not matter, and "00*12" stands for twelve bytes 00.
std::string HexOf(std::string_view literal);

inline constexpr std::array<uint8_t, 16> kUuid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Returns the place of the tests' objects.
inline Place TestPlace() { return {PoolSeed(kUuid), 3, LogAddress::At(2, 4096), 5}; }

// Returns a whole object, without the unused bytes up to the next granule.
std::vector<std::byte> WholeObject(const Place& place, std::string_view key, std::string_view value,
                                   uint64_t version = 77, uint64_t deadline = 0);

// Returns a valid geometry with fixed contents: 64 MiB, two shards.
Geometry TestGeometry();
Superblock TestSuperblock(const Geometry& geometry, uint64_t generation);

void FlipBit(std::span<std::byte> bytes, size_t bit);

}  // namespace erda::format
