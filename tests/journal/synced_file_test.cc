#include "journal/synced_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "journal/simulated_files.h"

namespace erda::journal {
namespace {

// The kernel tells an error once. Without the flush for all, the second call would say ok.
TEST(SyncedFileTest, ErrorIsToldToEveryCall) {
  SimulatedFiles files(1);
  UniqueFd fd(::open(files.pool().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd);
  const int number = fd.get();
  SyncedFile file(std::move(fd), files.pool());
  ASSERT_TRUE(file.Sync().ok());
  files.FailAt(0);
  EXPECT_EQ(file.Sync().error_number(), EIO);
  EXPECT_TRUE(files.failed());
  EXPECT_EQ(::fdatasync(number), 0) << "the disk works again";
  EXPECT_EQ(file.Sync().error_number(), EIO);
}

}  // namespace
}  // namespace erda::journal
