// Copies between private memory and memory that other processes read and write at the same time. They stand for the DMA
// of a NIC. Only an aligned 8-byte word of the shared side is copied whole, and nothing larger.
//
// Owns nothing. Requires: both sides are mapped for the whole size. Any thread may call these functions.
#pragma once

#include <cstddef>

namespace erda::fabric::shm {

// Starts to load the first cache lines that will be copied. The hardware notices the pattern itself after these.
inline constexpr size_t kPrefetchBytesMax = 2048;
void PrefetchShared(const std::byte* shared, size_t size);
void CopyFromShared(std::byte* to, const std::byte* shared, size_t size);
void CopyToShared(std::byte* shared, const std::byte* from, size_t size);

}  // namespace erda::fabric::shm
