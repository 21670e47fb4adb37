#include "journal/file_disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "base/unique_fd.h"
#include "journal/aligned_buffer.h"

namespace erda::journal {
namespace {

constexpr uint64_t kDiskBytes = 3 << 20;
// The tests' folder may be in memory.
constexpr FileDiskOptions kAnywhere = {.in_memory = true};

class FileDiskTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (folder_ / "journal").string(); }
  [[nodiscard]] bool Exists() const { return std::filesystem::exists(path()); }
  void WriteFile(uint64_t size) const {
    std::ofstream file(path(), std::ios::binary);
    file << std::string(size, 'x');
    ASSERT_TRUE(file.flush());
  }
  static void Fill(std::span<std::byte> bytes, int value) { std::ranges::fill(bytes, std::byte(value)); }

  const TemporaryFolder folder_;
};

testing::AssertionResult RefusesDisk(const Result<std::unique_ptr<FileDisk>>& disk, Code code, std::string_view part) {
  if (disk.ok()) return testing::AssertionFailure() << "the file was opened";
  if (disk.status().code() == code && disk.status().message().find(part) != std::string_view::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << disk.status().ToString();
}

TEST_F(FileDiskTest, NewFileIsZeroesWrittenForItsOwnerAlone) {
  const mode_t mask = ::umask(0);
  const auto disk = FileDisk::Create(path(), kDiskBytes + 4096, kAnywhere);
  ::umask(mask);
  ASSERT_TRUE(disk.ok()) << disk.status().ToString();
  EXPECT_EQ((*disk)->size(), kDiskBytes + 4096);
  struct stat info {};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(info.st_size, off_t{kDiskBytes + 4096});
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kDiskBytes + 4096);
  // No block is only allocated: the file system would report it as a hole.
  const UniqueFd fd(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_HOLE), off_t{kDiskBytes + 4096});
  const AlignedBuffer buffer(kDiskBytes + 4096);
  Fill(buffer.bytes(), 1);
  ASSERT_TRUE((*disk)->Read(0, buffer.bytes()).ok());
  EXPECT_TRUE(IsZero(buffer.bytes()));
}

TEST_F(FileDiskTest, WrittenBlocksAreReadBackAfterTheNextOpen) {
  const AlignedBuffer buffer(3 * 4096);
  Fill(buffer.bytes(), 7);
  {
    const auto disk = FileDisk::Create(path(), kDiskBytes, kAnywhere);
    ASSERT_TRUE(disk.ok());
    ASSERT_TRUE((*disk)->Write(8192, buffer.bytes()).ok());
    ASSERT_TRUE((*disk)->Write(kDiskBytes - 4096, buffer.bytes().first(4096)).ok());
    ASSERT_TRUE((*disk)->Flush().ok());
  }
  const auto disk = FileDisk::Open(path(), kAnywhere);
  ASSERT_TRUE(disk.ok()) << disk.status().ToString();
  EXPECT_EQ((*disk)->size(), kDiskBytes);
  const AlignedBuffer all(kDiskBytes);
  ASSERT_TRUE((*disk)->Read(0, all.bytes()).ok());
  EXPECT_TRUE(IsZero(all.bytes().first(8192)));
  EXPECT_TRUE(std::ranges::equal(all.bytes().subspan(8192, 3 * 4096), buffer.bytes()));
  EXPECT_TRUE(IsZero(all.bytes().subspan(8192 + 3 * 4096, kDiskBytes - 4096 - 8192 - 3 * 4096)));
  EXPECT_EQ(all.bytes().back(), std::byte{7});
}

// Returns the flags of the descriptor of this process that has the file open, or 0.
int FlagsOf(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry.path(), error) != path) continue;
    return ::fcntl(std::stoi(entry.path().filename().string()), F_GETFL);
  }
  return 0;
}

// Returns true if the file system of this folder writes a block without the page cache.
bool WritesDirectly(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  const AlignedBuffer block(4096);
  return fd && ::pwrite(fd.get(), block.bytes().data(), 4096, 0) == 4096;
}

TEST_F(FileDiskTest, PageCacheIsLeftOutWhereTheFileSystemAllowsIt) {
  const bool directly = WritesDirectly(folder_.path());
  const auto disk = FileDisk::Create(path(), kDiskBytes, kAnywhere);
  ASSERT_TRUE(disk.ok()) << disk.status().ToString();
  EXPECT_EQ((*disk)->direct(), directly);
  EXPECT_EQ((FlagsOf(path()) & O_DIRECT) != 0, directly);
}

TEST_F(FileDiskTest, FileThatExistsIsNotOverwritten) {
  WriteFile(10000);
  EXPECT_TRUE(RefusesDisk(FileDisk::Create(path(), kDiskBytes, kAnywhere), Code::kInvalidArgument, "exists already"));
  EXPECT_EQ(std::filesystem::file_size(path()), 10000U);
}

TEST_F(FileDiskTest, BytesAfterTheLastBlockDoNotCount) {
  WriteFile(10000);
  const auto disk = FileDisk::Open(path(), kAnywhere);
  ASSERT_TRUE(disk.ok());
  EXPECT_EQ((*disk)->size(), 8192U);
}

TEST_F(FileDiskTest, FileThatIsOpenIsRefused) {
  auto disk = FileDisk::Create(path(), kDiskBytes, kAnywhere);
  ASSERT_TRUE(disk.ok());
  EXPECT_TRUE(RefusesDisk(FileDisk::Open(path(), kAnywhere), Code::kUnavailable, "another server has it open"));
  disk->reset();
  EXPECT_TRUE(FileDisk::Open(path(), kAnywhere).ok());
}

TEST_F(FileDiskTest, OnlyOrdinaryFilesAreOpened) {
  EXPECT_TRUE(RefusesDisk(FileDisk::Open(path(), kAnywhere), Code::kInvalidArgument, "cannot open journal " + path()));
  EXPECT_TRUE(RefusesDisk(FileDisk::Open(folder_.path().string(), kAnywhere), Code::kInvalidArgument, "cannot open"));
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_TRUE(RefusesDisk(FileDisk::Open(path(), kAnywhere), Code::kInvalidArgument, "is not an ordinary file"));
}

TEST_F(FileDiskTest, FileInAFolderThatDoesNotExistIsNotCreated) {
  EXPECT_TRUE(RefusesDisk(FileDisk::Create(path() + "/x", kDiskBytes, kAnywhere), Code::kInvalidArgument,
                          "cannot create journal"));
}

TEST_F(FileDiskTest, ImpossibleSizeIsRefused) {
  EXPECT_TRUE(
      RefusesDisk(FileDisk::Create(path(), uint64_t{1} << 63, kAnywhere), Code::kInvalidArgument, "cannot have"));
  EXPECT_FALSE(Exists());
}

TEST_F(FileDiskTest, FileSystemInMemoryIsRefused) {
  const TemporaryFolder memory("/dev/shm");
  const std::string file = memory / "journal";
  EXPECT_TRUE(RefusesDisk(FileDisk::Create(file, kDiskBytes), Code::kInvalidArgument, "is in memory"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(FileDisk::Create(file, kDiskBytes, kAnywhere).ok());
  EXPECT_TRUE(RefusesDisk(FileDisk::Open(file), Code::kInvalidArgument, "is in memory"));
  EXPECT_TRUE(FileDisk::Open(file, kAnywhere).ok());
}

TEST_F(FileDiskTest, PageCacheIsUsedWhereTheFileSystemRefusesDirectWrites) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount such a file system";
  ASSERT_EQ(::mount("ramfs", folder_.path().c_str(), "ramfs", 0, nullptr), 0) << std::strerror(errno);
  {
    const AlignedBuffer buffer(8192);
    Fill(buffer.bytes(), 7);
    auto disk = FileDisk::Create(path(), kDiskBytes, kAnywhere);
    ASSERT_TRUE(disk.ok()) << disk.status().ToString();
    EXPECT_FALSE((*disk)->direct());
    EXPECT_EQ(FlagsOf(path()) & O_DIRECT, 0);
    EXPECT_TRUE((*disk)->Write(4096, buffer.bytes()).ok());
    EXPECT_TRUE((*disk)->Flush().ok());
    disk->reset();
    Fill(buffer.bytes(), 1);
    disk = FileDisk::Open(path(), kAnywhere);
    ASSERT_TRUE(disk.ok()) << disk.status().ToString();
    EXPECT_FALSE((*disk)->direct());
    EXPECT_TRUE((*disk)->Read(0, buffer.bytes()).ok());
    EXPECT_TRUE(IsZero(buffer.bytes().first(4096)));
    EXPECT_EQ(buffer.bytes()[4096], std::byte{7});
  }
  ASSERT_EQ(::umount(folder_.path().c_str()), 0) << std::strerror(errno);
}

TEST_F(FileDiskTest, FullFileSystemIsRefusedAndLeftAsItWas) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=1m"), 0) << std::strerror(errno);
  EXPECT_TRUE(RefusesDisk(FileDisk::Create(path(), kDiskBytes, kAnywhere), Code::kResourceExhausted,
                          "cannot allocate 3145728 bytes for journal"));
  EXPECT_FALSE(Exists());
  EXPECT_TRUE(FileDisk::Create(path(), 512 << 10, kAnywhere).ok());
  ASSERT_EQ(::umount(folder_.path().c_str()), 0) << std::strerror(errno);
}

// A limit on the size of files makes writes after it fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) {
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_F(FileDiskTest, AfterAFailedWriteEachWriteAndFlushFails) {
  const auto disk = FileDisk::Create(path(), kDiskBytes, kAnywhere);
  ASSERT_TRUE(disk.ok());
  const AlignedBuffer buffer(4096);
  Fill(buffer.bytes(), 9);
  std::string first;
  {
    const FileSizeLimit limit(1 << 20);
    const Status status = (*disk)->Write(2 << 20, buffer.bytes());
    ASSERT_FALSE(status.ok());
    first = status.ToString();
    EXPECT_NE(first.find("cannot write journal " + path() + " at offset 2097152"), std::string::npos) << first;
  }
  EXPECT_EQ((*disk)->Write(0, buffer.bytes()).ToString(), first);
  EXPECT_EQ((*disk)->Flush().ToString(), first);
  EXPECT_TRUE((*disk)->Read(0, buffer.bytes()).ok());
  EXPECT_TRUE(IsZero(buffer.bytes())) << "nothing is written after a failure";
}

TEST_F(FileDiskTest, FileThatBecomesShorterIsAnError) {
  const auto disk = FileDisk::Create(path(), kDiskBytes, kAnywhere);
  ASSERT_TRUE(disk.ok());
  ASSERT_EQ(::truncate(path().c_str(), 4096), 0);
  const AlignedBuffer buffer(8192);
  const Status status = (*disk)->Read(0, buffer.bytes());
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find("became shorter"), std::string_view::npos);
}

}  // namespace
}  // namespace erda::journal
