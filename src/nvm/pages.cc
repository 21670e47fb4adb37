#include "nvm/pages.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/map_shared.h"

namespace erda::nvm {

namespace {

// Older headers do not have these.
constexpr int kPopulateWrite = 23;  // Since Linux 5.14.
constexpr int kCollapse = 25;       // Since Linux 6.1. The settings of the system for large pages do not matter.

// The advice takes whole pages.
std::span<std::byte> PagesOf(std::span<std::byte> range) {
  auto* const begin = reinterpret_cast<std::byte*>(AlignDown(reinterpret_cast<uintptr_t>(range.data()), kSmallPage));
  return {begin, AlignUp(static_cast<size_t>(range.data() + range.size() - begin), kSmallPage)};
}

}  // namespace

void MakePages(std::span<std::byte> range) {
  if (range.empty()) return;
  const std::span<std::byte> pages = PagesOf(range);
  (void)::madvise(pages.data(), pages.size(), kPopulateWrite);
}

void MakeLargePages(std::span<std::byte> range) {
  while (!range.empty()) {
    const uint64_t in_page = reinterpret_cast<uintptr_t>(range.data()) % kLargePage;
    const auto piece = range.first(std::min<uint64_t>(range.size(), kLargePage - in_page));
    // The kernel collapses no memory without a page.
    if (piece.size() == kLargePage) MakePages(piece.first(1));
    if (piece.size() < kLargePage || ::madvise(piece.data(), piece.size(), kCollapse) != 0) MakePages(piece);
    range = range.subspan(piece.size());
  }
}

}  // namespace erda::nvm
