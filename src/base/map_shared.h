// Shared mappings of files and memfds, placed so that the kernel can map them by large pages.
//
// Owns nothing: the caller owns the descriptor and the mapping. Any thread may call it.
#pragma once

#include <cstddef>
#include <span>

namespace erda {

// The page of any mapping on x86-64, or a part of it.
inline constexpr size_t kSmallPage = 4096;
// The page that one entry of a higher table maps.
inline constexpr size_t kLargePage = 2 << 20;

// Maps the first `size` bytes. If they are as long as a large page, they begin at a multiple of it. Elsewhere no page
// of the mapping could be large. Returns no bytes if the kernel refuses; errno then has the reason. The caller unmaps
// them.
std::span<std::byte> MapShared(int fd, size_t size, bool writable);

}  // namespace erda
