#include "base/map_shared.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <fstream>

#include "base/unique_fd.h"

namespace erda {
namespace {

UniqueFd File(size_t size) {
  UniqueFd fd(::memfd_create("map-shared", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

TEST(MapSharedTest, LongMappingsBeginAtALargePage) {
  const size_t size = 3 * kLargePage + 5000;
  const UniqueFd fd = File(size);
  for (int i = 0; i < 5; ++i) {
    const auto bytes = MapShared(fd.get(), size, true);
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % kLargePage, 0);
    bytes.front() = bytes.back() = std::byte{1};
    // The others move what follows to another place.
    if (i % 2 == 0) {
      EXPECT_EQ(::munmap(bytes.data(), bytes.size()), 0);
    }
  }
}

TEST(MapSharedTest, MappingsOfTheSameFileShareItsBytes) {
  for (const size_t size : {size_t{4096}, kLargePage, 2 * kLargePage + 1}) {
    const UniqueFd fd = File(size);
    const auto writable = MapShared(fd.get(), size, true);
    const auto readable = MapShared(fd.get(), size, false);
    ASSERT_EQ(writable.size(), size);
    ASSERT_EQ(readable.size(), size);
    writable.back() = std::byte{7};
    EXPECT_EQ(readable.back(), std::byte{7});
    ::munmap(writable.data(), size);
    ::munmap(readable.data(), size);
  }
}

// Returns how many pages of addresses this process has mapped.
int64_t MappedPages() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = -1;
  file >> pages;
  return pages;
}

TEST(MapSharedNoSanitizerTest, NoAddressesAreKeptBesideTheMapping) {
  const size_t size = kLargePage + 4096;
  const UniqueFd fd = File(size);
  (void)MappedPages();  // Its first call maps memory of the library.
  const int64_t before = MappedPages();
  const auto bytes = MapShared(fd.get(), size, true);
  EXPECT_EQ(MappedPages() - before, static_cast<int64_t>(size / 4096));
  ::munmap(bytes.data(), size);
  EXPECT_TRUE(MapShared(-1, size, true).empty());
  EXPECT_EQ(MappedPages(), before);
}

// A hostile peer may send such a file again and again.
TEST(MapSharedNoSanitizerTest, RefusedFileLeavesTheOtherMappingsAlone) {
  const size_t size = 2 * kLargePage;
  const UniqueFd fd(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  (void)MappedPages();
  const int64_t before = MappedPages();
  errno = 0;
  EXPECT_TRUE(MapShared(fd.get(), size, true).empty());
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(MappedPages(), before);
}

TEST(MapSharedTest, RefusalsHaveTheirReason) {
  for (const size_t size : {size_t{4096}, 2 * kLargePage}) {
    errno = 0;
    EXPECT_TRUE(MapShared(-1, size, true).empty());
    EXPECT_EQ(errno, EBADF);
  }
}

}  // namespace
}  // namespace erda
