#include "journal/new_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_io.h"
#include "base/temporary_folder.h"
#include "journal/watched_folder.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  Status Make() const {
    auto file = NewFile::Create(Path("file"), Path("temporary"));
    if (!file.ok()) return file.status();
    if (auto status = WriteRange((*file)->fd(), "file", 0, AsBytes("content")); !status.ok()) return status;
    return (*file)->Keep();
  }
  const TemporaryFolder folder_;
};

// A power cut must leave no name without its bytes.
TEST_F(NewFileTest, NameComesAfterTheBytesAndBeforeTheFolder) {
  const WatchedFolder watched(folder_.path());
  ASSERT_TRUE(Make().ok());
  const std::vector<std::string> expected = {"write temporary", "sync temporary", "rename temporary file", "sync ."};
  EXPECT_EQ(watched.calls(), expected);
  EXPECT_TRUE(fs::exists(Path("file")));
  EXPECT_FALSE(fs::exists(Path("temporary")));
}

TEST_F(NewFileTest, EveryErrorLeavesNoFile) {
  WatchedFolder watched(folder_.path());
  for (uint64_t call = 0; call < 4; ++call) {
    watched.FailAt(call);
    EXPECT_FALSE(Make().ok()) << call;
    EXPECT_TRUE(fs::is_empty(folder_.path())) << call;
  }
  EXPECT_TRUE(Make().ok());
}

TEST_F(NewFileTest, ExistingFileIsKept) {
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(Make().code(), Code::kConflict);
  EXPECT_TRUE(fs::exists(Path("file")));
}

TEST_F(NewFileTest, FileThatIsNotKeptIsRemoved) {
  ASSERT_TRUE(NewFile::Create(Path("file"), Path("temporary")).ok());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace erda::journal
