#include "base/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdint>

#include "base/temporary_folder.h"
#include "base/unique_fd.h"

namespace erda {
namespace {

class AllocateRangeTest : public testing::Test {
 protected:
  AllocateRangeTest() : fd_(::open((folder_ / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}

  [[nodiscard]] uint64_t Allocated() const {
    struct stat info {};
    EXPECT_EQ(::fstat(fd_.get(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }
  // Returns the free bytes of the file system.
  [[nodiscard]] uint64_t Free() const {
    struct statvfs info {};
    EXPECT_EQ(::fstatvfs(fd_.get(), &info), 0);
    return info.f_bfree * info.f_frsize;
  }

  const TemporaryFolder folder_;
  UniqueFd fd_;
};

TEST_F(AllocateRangeTest, RangeGetsItsBlocks) {
  ASSERT_EQ(AllocateRange(fd_.get(), 4096, 3 << 20), 0);
  EXPECT_GE(Allocated(), (3U << 20) - 4096);
  EXPECT_EQ(AllocateRange(fd_.get(), 0, 3 << 20), 0) << "most of it has its blocks";
}

// Regression: the call took all free blocks of the disk before it failed. For that moment nobody else could write.
TEST_F(AllocateRangeTest, RangeWithoutRoomTakesNoBlocks) {
  ASSERT_GT(Free(), 0U);
  EXPECT_EQ(AllocateRange(fd_.get(), 0, 2 * Free() + (1 << 20)), ENOSPC);
  EXPECT_EQ(Allocated(), 0U);
}

}  // namespace
}  // namespace erda
