// Copies between private memory and memory that other processes read and write at the same time: what a NIC's DMA does
// for RDMA. Nothing larger than an aligned 8-byte word of the shared side is whole.
#pragma once

#include <cstddef>

namespace erda::fabric::shm {

// Starts loading the cache lines that will be copied, the first ones: further in, the hardware has noticed by itself.
inline constexpr size_t kPrefetchBytesMax = 2048;
void PrefetchShared(const std::byte* shared, size_t size);
void CopyFromShared(std::byte* to, const std::byte* shared, size_t size);
void CopyToShared(std::byte* shared, const std::byte* from, size_t size);

}  // namespace erda::fabric::shm
