#include "nvm/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/bytes.h"
#include "base/map_shared.h"
#include "base/unique_fd.h"

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

// Returns how many bytes of the range are in its first large page.
size_t BytesInLargePage(std::span<std::byte> range) {
  return std::min<size_t>(range.size(), kLargePage - reinterpret_cast<uintptr_t>(range.data()) % kLargePage);
}

// REQUIRES: the pages are whole, and at most a large page.
size_t PagesInMemory(std::span<std::byte> pages) {
  std::array<unsigned char, kLargePage / kSmallPage> found{};
  if (::mincore(pages.data(), pages.size(), found.data()) != 0) return 0;
  return static_cast<size_t>(std::ranges::count_if(found, [](unsigned char page) { return (page & 1) != 0; }));
}

// Returns how many page faults a work causes in this thread.
template <class Work>
int64_t FaultsOf(Work work) {
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
  };
  const int64_t before = faults();
  work();
  return faults() - before;
}

}  // namespace

bool MakePages(std::span<std::byte> range) {
  if (range.empty()) return true;
  const std::span<std::byte> pages = PagesOf(range);
  return ::madvise(pages.data(), pages.size(), kPopulateWrite) == 0;
}

bool MakeLargePages(std::span<std::byte> range) {
  while (!range.empty()) {
    const auto piece = range.first(BytesInLargePage(range));
    // The kernel collapses no memory without a page.
    const bool large = piece.size() == kLargePage && MakePages(piece.first(1)) &&
                       ::madvise(piece.data(), piece.size(), kCollapse) == 0;
    if (!large && !MakePages(piece)) return false;
    range = range.subspan(piece.size());
  }
  return true;
}

// Another thread may store into the range between the calls: its page then stays, and no byte is lost.
void EnlargePages(std::span<std::byte> range, int fd, uint64_t offset) {
  for (uint64_t at = 0; at < range.size(); at += kLargePage) {
    const auto piece = range.subspan(at, kLargePage);
    const auto in_memory = PagesInMemory(piece);
    if (in_memory == 0 || in_memory > kLargePage / kSmallPage / 2) continue;
    // The kernel forgets only pages that no process maps.
    (void)::madvise(piece.data(), piece.size(), MADV_DONTNEED);
    (void)::posix_fadvise(fd, static_cast<off_t>(offset + at), static_cast<off_t>(piece.size()), POSIX_FADV_DONTNEED);
  }
  (void)::madvise(range.data(), range.size(), MADV_HUGEPAGE);
}

void MakeEnlargedPages(std::span<std::byte> range) {
  while (!range.empty()) {
    const auto piece = range.first(BytesInLargePage(range));
    MakePages(piece.first(1));
    // The first page of a large one brings the others.
    const bool large = piece.size() > kSmallPage && FaultsOf([&] { MakePages(piece.subspan(kSmallPage, 1)); }) == 0;
    if (large) MakePages(piece);
    range = range.subspan(piece.size());
  }
}

bool KernelEnlarges(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd || ::posix_fallocate(fd.get(), 0, kLargePage) != 0) return false;
  const std::span<std::byte> page = MapShared(fd.get(), kLargePage, true);
  if (page.empty()) return false;
  EnlargePages(page, fd.get(), 0);
  MakePages(page.first(1));
  const bool enlarges = FaultsOf([&] { MakePages(page.subspan(kSmallPage, 1)); }) == 0;
  ::munmap(page.data(), page.size());
  return enlarges;
}

uint64_t AvailableMemory() {
  std::ifstream from("/proc/meminfo");
  for (std::string name; from >> name;) {
    uint64_t kibibytes = 0;
    if (name == "MemAvailable:" && from >> kibibytes) return kibibytes * 1024;
  }
  return UINT64_MAX;
}

bool MemoryHasRoomFor(uint64_t bytes) {
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  return bytes / kSmallPage <= pages / 2;
}

}  // namespace erda::nvm
