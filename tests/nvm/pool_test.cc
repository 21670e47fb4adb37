#include "nvm/pool.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "nvm/fixture.h"
#include "nvm/writer.h"

namespace erda::nvm {
namespace {

namespace fs = std::filesystem;

bool AllZero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// --- dram:

TEST_F(PoolTest, ADramPoolIsZeroedAndVolatile) {
  const auto pool = MustOpen("dram:", kPoolBytes);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->size(), kPoolBytes);
  EXPECT_TRUE(AllZero(pool->bytes()));
  EXPECT_TRUE(pool->created());
  EXPECT_EQ(pool->durability(), Durability::kVolatile);
  EXPECT_EQ(pool->view().bytes.data(), pool->bytes().data());
}

TEST_F(PoolTest, TwoDramPoolsShareNoBytes) {
  const auto first = MustOpen("dram:", kPoolBytes);
  const auto second = MustOpen("dram:", kPoolBytes);
  ASSERT_TRUE(first && second);
  Writer(*first).Store64(0, 1);
  EXPECT_TRUE(AllZero(second->bytes()));
}

TEST_F(PoolTest, ADramPoolNeedsASize) {
  EXPECT_TRUE(Refuses({.path = "dram:"}, Code::kInvalidArgument, "needs a size"));
}

TEST_F(PoolTest, APoolNeedsAName) {
  EXPECT_TRUE(Refuses({.path = "", .size = kPoolBytes}, Code::kInvalidArgument, "name of the pool"));
}

// --- Files

TEST_F(PoolTest, AFileIsCreatedForItsOwnerAloneAndAllocated) {
  const mode_t mask = ::umask(0);
  const auto pool = MustOpen(pool_path(), kPoolBytes);
  ::umask(mask);
  ASSERT_NE(pool, nullptr);
  EXPECT_TRUE(pool->created());
  EXPECT_TRUE(AllZero(pool->bytes()));
  EXPECT_EQ(pool->durability(), Durability::kProcessSafe);

  struct stat info {};
  ASSERT_EQ(::stat(pool_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(info.st_size, off_t{kPoolBytes});
  // A full disk must show now, and not as a SIGBUS later.
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kPoolBytes);
}

// Returns the number of the pool's pages in memory.
size_t PagesInMemory(const Pool& pool) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in_memory(pool.size() / page);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(pool.bytes().data()), pool.size(), in_memory.data()), 0);
  return static_cast<size_t>(std::ranges::count_if(in_memory, [](unsigned char flags) { return (flags & 1) != 0; }));
}

// A server looks at the header of each segment when it opens a pool, and must not wait for all of the file.
TEST_F(PoolTest, ScatteredLooksDoNotReadAllOfAFile) {
  constexpr uint64_t kBytes = 64 << 20;
  constexpr uint64_t kStep = 1 << 20;
  const auto pool = MustOpen(pool_path(), kBytes);
  ASSERT_NE(pool, nullptr);
  const size_t before = PagesInMemory(*pool);  // Some file systems are memory.
  for (uint64_t at = 0; at < kBytes; at += kStep) EXPECT_EQ(pool->bytes()[at], std::byte{0});
  EXPECT_LE(PagesInMemory(*pool), before + 2 * kBytes / kStep);
}

TEST_F(PoolTest, WillUseReadsTheRangeIn) {
  constexpr uint64_t kBytes = 8 << 20;
  const auto pool = MustOpen(pool_path(), kBytes);
  ASSERT_NE(pool, nullptr);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr uint64_t kAsked = 2 << 20;
  Writer(*pool).WillUse(kBytes - kAsked - 1, kAsked);
  // It is only advice, so it may take some time.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (PagesInMemory(*pool) < kAsked / page && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_GE(PagesInMemory(*pool), kAsked / page);
}

// A reader that advances finds the piece that it reaches, and the next one is on its way. Skipped pieces are left
// alone.
TEST_F(PoolTest, AdvancingReaderFindsTheNextPiece) {
  constexpr uint64_t kPiece = Writer::kPieceAhead;
  constexpr uint64_t kBytes = 16 * kPiece;
  const auto pool = MustOpen(pool_path(), kBytes);
  ASSERT_NE(pool, nullptr);
  const auto pages = kPiece / static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const size_t before = PagesInMemory(*pool);  // Some file systems are memory.
  const auto expect_pieces = [&](size_t count) {
    const size_t expected = before == 0 ? count * pages : before;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (PagesInMemory(*pool) < expected && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_GE(PagesInMemory(*pool), expected);
    EXPECT_LT(PagesInMemory(*pool), expected + pages);
  };
  const Writer writer(*pool);
  writer.WillUse(0, 2 * kPiece);
  expect_pieces(2);
  writer.GoesOn(100, kPiece - 1, kBytes);
  expect_pieces(2);
  writer.GoesOn(kPiece - 1, kPiece + 1, kBytes);  // The third.
  expect_pieces(3);
  writer.GoesOn(kPiece + 1, 10 * kPiece, kBytes);  // The eleventh and the twelfth.
  expect_pieces(5);
  writer.GoesOn(10 * kPiece, 15 * kPiece, kBytes);  // The last.
  expect_pieces(6);
  writer.GoesOn(15 * kPiece, kBytes - 1, kBytes);
  expect_pieces(6);
}

TEST_F(PoolTest, ReopenedFileHasTheStoredBytes) {
  {
    const auto pool = MustOpen(pool_path(), kPoolBytes);
    ASSERT_NE(pool, nullptr);
    Writer writer(*pool);
    writer.Write(100, AsBytes("some bytes"));
    writer.Store64(kPoolBytes - 8, 0x0102030405060708);
    writer.Persist(0, kPoolBytes);
  }
  for (const uint64_t size : {uint64_t{0}, kPoolBytes}) {  // With or without the size.
    const auto pool = MustOpen(pool_path(), size);
    ASSERT_NE(pool, nullptr);
    EXPECT_FALSE(pool->created());
    EXPECT_EQ(pool->size(), kPoolBytes);
    EXPECT_EQ(AsString(pool->bytes().subspan(100, 10)), "some bytes");
    EXPECT_EQ(LoadAs<uint64_t>(pool->bytes().subspan(kPoolBytes - 8)), 0x0102030405060708U);
  }
}

TEST_F(PoolTest, AFileOfAnotherSizeIsRefusedAndLeftAsItIs) {
  WriteFile("pool", std::string(8192, 'x'));
  EXPECT_TRUE(Refuses({.path = pool_path(), .size = kPoolBytes}, Code::kInvalidArgument, "has 8192 bytes, not the"));
  EXPECT_EQ(fs::file_size(pool_path()), 8192U);
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(AsString(pool->bytes()), std::string(8192, 'x'));
}

// --- The disk

// Returns the kibibytes of the mapping that begins there and that are newer in memory than on the disk.
uint64_t DirtyKib(const std::byte* begin) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(begin);
  uint64_t dirty = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uint64_t low = 0;
    uint64_t high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) inside = low <= address && address < high;
    uint64_t kib = 0;
    if (inside && (std::sscanf(line.c_str(), "Private_Dirty: %lu", &kib) == 1 ||
                   std::sscanf(line.c_str(), "Shared_Dirty: %lu", &kib) == 1)) {
      dirty += kib;
    }
  }
  return dirty;
}

TEST_F(PoolTest, SyncWritesTheWholeFileOrTheRange) {
  struct statfs system {};
  ASSERT_EQ(::statfs(folder_.path().c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "a file system in memory never writes a page to a disk";
  const auto pool = MustOpen(pool_path(), kPoolBytes);
  ASSERT_NE(pool, nullptr);
  Writer writer(*pool);
  const auto fill = [&] {
    for (uint64_t at = 0; at < kPoolBytes; at += 4096) writer.Store64(at, at + 1);
  };
  fill();
  ASSERT_EQ(DirtyKib(pool->bytes().data()), kPoolBytes / 1024);
  ASSERT_TRUE(pool->Sync().ok());
  EXPECT_EQ(DirtyKib(pool->bytes().data()), 0U);
  fill();
  ASSERT_TRUE(pool->Sync(4096, 8192).ok());
  EXPECT_EQ(DirtyKib(pool->bytes().data()), kPoolBytes / 1024 - 8);
  ASSERT_TRUE(pool->Sync(0, 1).ok());
  EXPECT_EQ(DirtyKib(pool->bytes().data()), kPoolBytes / 1024 - 12);
}

TEST_F(PoolTest, AFileHasTheBootOfTheMachine) {
  const auto pool = MustOpen(pool_path(), kPoolBytes);
  ASSERT_NE(pool, nullptr);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  ASSERT_TRUE(std::getline(file, text));
  std::erase(text, '-');
  std::string hex;
  for (const uint8_t byte : pool->boot()) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  EXPECT_EQ(hex, text);
  EXPECT_EQ(MustOpen("dram:", kPoolBytes)->boot(), format::BootId{});
}

uint64_t AllocatedBytes(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
}

TEST_F(PoolTest, AFileWithHolesGetsItsBlocks) {
  WriteFile("pool", std::string(8192, 'x'));
  fs::resize_file(pool_path(), kPoolBytes - 4096);
  std::ofstream(pool_path(), std::ios::app) << std::string(4096, 'y');
  ASSERT_LT(AllocatedBytes(pool_path()), kPoolBytes);
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  EXPECT_GE(AllocatedBytes(pool_path()), kPoolBytes);
  EXPECT_EQ(AsString(pool->bytes().first(8192)), std::string(8192, 'x'));
  EXPECT_TRUE(AllZero(pool->bytes().subspan(8192, kPoolBytes - 12288)));
  EXPECT_EQ(AsString(pool->bytes().last(4096)), std::string(4096, 'y'));
}

TEST_F(PoolTest, HolesOnAFullDiskAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=64k"), 0) << std::strerror(errno);
  WriteFile("pool", std::string(8192, 'x'));
  fs::resize_file(pool_path(), 1 << 20);
  EXPECT_TRUE(Refuses({.path = pool_path()}, Code::kResourceExhausted, "a sparse file"));
  EXPECT_EQ(fs::file_size(pool_path()), 1U << 20);
  fs::resize_file(pool_path(), 32 << 10);
  EXPECT_NE(MustOpen(pool_path(), 0), nullptr);
  ASSERT_EQ(::umount(folder_.path().c_str()), 0) << std::strerror(errno);
}

TEST_F(PoolTest, AFileMayHaveMoreThanWasAskedFor) {
  WriteFile("pool", std::string(8192, 'x'));
  auto pool = MustOpen(pool_path(), 4096);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->size(), 8192U);
  pool->Narrow(4096);
  EXPECT_EQ(pool->size(), 4096U);
  EXPECT_EQ(pool->view().bytes.size(), 4096U);
}

TEST_F(PoolTest, AFileIsWidenedByZeroes) {
  WriteFile("pool", std::string(8192, 'x'));
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  pool->Narrow(4096);
  ASSERT_TRUE(pool->Widen(4096, kPoolBytes).ok());
  EXPECT_EQ(AsString(pool->bytes().first(4096)), std::string(4096, 'x'));
  EXPECT_EQ(pool->size(), kPoolBytes);
  EXPECT_TRUE(AllZero(pool->bytes().subspan(4096)));
  EXPECT_TRUE(pool->Sync().ok());
  EXPECT_EQ(fs::file_size(pool_path()), kPoolBytes);
  struct stat info {};
  ASSERT_EQ(::stat(pool_path().c_str(), &info), 0);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kPoolBytes);
  Writer(*pool).Write(kPoolBytes - 3, AsBytes("end"));
  EXPECT_TRUE(Refuses({.path = pool_path()}, Code::kUnavailable, "another server")) << "it is locked all the time";
}

TEST_F(PoolTest, FailedWidenLeavesThePoolUnchanged) {
  WriteFile("pool", std::string(8192, 'x'));
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  EXPECT_FALSE(pool->Widen(8192, uint64_t{1} << 62).ok());  // No file system has that much space.
  EXPECT_EQ(AsString(pool->bytes()), std::string(8192, 'x'));
  EXPECT_EQ(fs::file_size(pool_path()), 8192U);
  EXPECT_EQ(MustOpen("dram:", kPoolBytes)->Widen(kPoolBytes, 2 * kPoolBytes).code(), Code::kInvalidArgument);
}

TEST_F(PoolTest, SizeNeedNotBeWholePages) {
  WriteFile("pool", "123");
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(AsString(pool->bytes()), "123");
}

TEST_F(PoolTest, AFileThatIsMissingNeedsASize) {
  EXPECT_TRUE(Refuses({.path = pool_path()}, Code::kInvalidArgument, "does not exist"));
  EXPECT_FALSE(Exists("pool"));
}

TEST_F(PoolTest, AFileWithoutBytesIsRefusedAndLeftAsItIs) {
  WriteFile("pool", "");
  EXPECT_TRUE(Refuses({.path = pool_path()}, Code::kInvalidArgument, "empty file"));
  EXPECT_TRUE(Refuses({.path = pool_path(), .size = kPoolBytes}, Code::kInvalidArgument, "empty file"));
  EXPECT_TRUE(Exists("pool"));
  EXPECT_EQ(fs::file_size(pool_path()), 0U);
}

TEST_F(PoolTest, FoldersAndPipesAreRefused) {
  EXPECT_TRUE(Refuses({.path = folder_.path().string()}, Code::kInvalidArgument, ""));
  EXPECT_TRUE(Refuses({.path = folder_.path().string(), .size = kPoolBytes}, Code::kInvalidArgument, ""));
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(Refuses({.path = Path("fifo")}, Code::kInvalidArgument, "neither a file nor a DAX device"));
  EXPECT_TRUE(Refuses({.path = Path("fifo"), .size = kPoolBytes}, Code::kInvalidArgument, "neither a file"));
  EXPECT_TRUE(Refuses({.path = "/dev/null", .size = kPoolBytes}, Code::kInvalidArgument, "cannot be mapped"));
}

TEST_F(PoolTest, ImpossiblePathIsRefused) {
  EXPECT_TRUE(Refuses({.path = Path("none/pool"), .size = kPoolBytes}, Code::kInvalidArgument, "No such file"));
  WriteFile("file", "x");
  EXPECT_TRUE(Refuses({.path = Path("file/pool"), .size = kPoolBytes}, Code::kInvalidArgument, "Not a directory"));
  EXPECT_TRUE(Refuses({.path = Path(std::string(300, 'n')), .size = kPoolBytes}, Code::kInvalidArgument, "too long"));
}

TEST_F(PoolTest, ASizeThatNoMediumHasIsRefusedAndLeavesNoFile) {
  for (const std::string& path : {pool_path(), std::string("dram:")}) {
    for (const uint64_t size : {uint64_t{1} << 63, UINT64_MAX})
      EXPECT_TRUE(Refuses({.path = path, .size = size}, Code::kInvalidArgument, std::to_string(size)));
    // Some file systems could have such a file, but lack the space.
    const auto large = Pool::Open({.path = path, .size = uint64_t{1} << 60});
    ASSERT_FALSE(large.ok());
    EXPECT_NE(large.status().code(), Code::kInternal) << large.status().ToString();
    EXPECT_NE(large.status().message().find("1152921504606846976 bytes"), std::string_view::npos);
  }
  EXPECT_FALSE(Exists("pool"));
}

TEST_F(PoolTest, OnlyAFileThatThisOpenMadeIsRemoved) {
  {
    const auto pool = MustOpen(pool_path(), kPoolBytes);
    ASSERT_NE(pool, nullptr);
    pool->RemoveIfCreated();
    EXPECT_FALSE(Exists("pool"));
  }
  { ASSERT_NE(MustOpen(pool_path(), kPoolBytes), nullptr); }
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  pool->RemoveIfCreated();
  EXPECT_TRUE(Exists("pool"));
}

// --- The lock

TEST_F(PoolTest, AnOpenPoolIsUnavailableToAnotherOpen) {
  {
    const auto pool = MustOpen(pool_path(), kPoolBytes);
    ASSERT_NE(pool, nullptr);
    EXPECT_TRUE(Refuses({.path = pool_path()}, Code::kUnavailable, "another server"));
    EXPECT_TRUE(Refuses({.path = pool_path(), .size = kPoolBytes}, Code::kUnavailable, "another server"));
    EXPECT_TRUE(Exists("pool"));
  }
  EXPECT_NE(MustOpen(pool_path(), 0), nullptr);
}

TEST_F(PoolTest, AnOpenPoolIsUnavailableToAnotherProcess) {
  const auto pool = MustOpen(pool_path(), kPoolBytes);
  ASSERT_NE(pool, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = Pool::Open({.path = pool_path()});
    ::_exit(!second.ok() && second.status().code() == Code::kUnavailable ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(PoolTest, APoolOfAProcessThatDiedIsFree) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto pool = Pool::Open({.path = pool_path(), .size = kPoolBytes});
    if (!pool.ok()) ::_exit(1);
    Writer(**pool).Store64(8, 77);
    ::_exit(0);  // Without closing anything.
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const auto pool = MustOpen(pool_path(), 0);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(Writer(*pool).Load64(8), 77U);  // The stores survive the process.
}

// --- The view

class PoolViewTest : public PoolTest, public testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] std::unique_ptr<Pool> OpenOne() const {
    const std::string name = GetParam();
    return MustOpen(name == "dram" ? "dram:" : pool_path(), kPoolBytes);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, PoolViewTest, testing::Values("dram", "file"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(PoolViewTest, BothDescriptorsMapThePool) {
  const auto pool = OpenOne();
  ASSERT_NE(pool, nullptr);
  const MemoryView view = pool->view();
  ASSERT_EQ(view.bytes.size(), kPoolBytes);
  Writer(*pool).Write(5000, AsBytes("hello"));
  for (const int fd : {view.fd, view.fd_read_only}) {
    void* at = ::mmap(nullptr, kPoolBytes, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(at, MAP_FAILED);
    EXPECT_EQ(std::string_view(static_cast<const char*>(at) + 5000, 5), "hello");
    EXPECT_EQ(::munmap(at, kPoolBytes), 0);
  }
}

TEST_P(PoolViewTest, TheReadOnlyDescriptorCannotBeMappedForWriting) {
  const auto pool = OpenOne();
  ASSERT_NE(pool, nullptr);
  const MemoryView view = pool->view();
  EXPECT_EQ(::mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE, MAP_SHARED, view.fd_read_only, 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  void* at = ::mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE, MAP_SHARED, view.fd, 0);
  ASSERT_NE(at, MAP_FAILED);
  static_cast<char*>(at)[17] = 'w';
  EXPECT_EQ(pool->bytes()[17], std::byte{'w'});
  EXPECT_EQ(::munmap(at, kPoolBytes), 0);
}

TEST_P(PoolViewTest, TheDescriptorsDoNotPassToPrograms) {
  const auto pool = OpenOne();
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(::fcntl(pool->view().fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::fcntl(pool->view().fd_read_only, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

// A client may keep its copies for any time. The next server must not have to wait for it.
TEST_F(PoolTest, ACopyOfTheDescriptorsDoesNotKeepTheLock) {
  auto pool = MustOpen(pool_path(), kPoolBytes);
  ASSERT_NE(pool, nullptr);
  const UniqueFd read_write(::fcntl(pool->view().fd, F_DUPFD_CLOEXEC, 0));
  const UniqueFd read_only(::fcntl(pool->view().fd_read_only, F_DUPFD_CLOEXEC, 0));
  ASSERT_TRUE(read_write && read_only);
  EXPECT_TRUE(Refuses({.path = pool_path()}, Code::kUnavailable, "another server"));
  pool.reset();
  EXPECT_NE(MustOpen(pool_path(), 0), nullptr);
}

// libpmem reads the variable when it is loaded, so the statement runs in a new process, which inherits it.
TEST(PoolDeathTest, AFileOnADaxFileSystemIsPowerSafe) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_EQ(::setenv("PMEM_IS_PMEM_FORCE", "1", 1), 0);
  const auto use = [] {
    char path[] = "/tmp/erda-dax-XXXXXX";
    const UniqueFd file(::mkstemp(path));
    const bool sized = file && ::ftruncate(file.get(), 4096) == 0;
    auto pool = Pool::Open({.path = path});
    ::unlink(path);
    if (!sized || !pool.ok() || (*pool)->durability() != Durability::kPowerSafe) ::_exit(1);
    Writer writer(**pool);
    for (uint64_t at = 0; at < 200; ++at) {  // Ranges of any alignment are flushed.
      writer.Write(at, AsBytes("across a cache line, or not"));
      writer.Persist(at, at);
    }
    ::_exit(writer.counters().fences == 199 ? 0 : 2);
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
  ASSERT_EQ(::unsetenv("PMEM_IS_PMEM_FORCE"), 0);
}

// Shared memory has no disk to write to: a NIC's stores are as good there as a CPU's.
TEST_F(PoolTest, AFileInMemoryIsNotWrittenBack) {
  struct statfs info {};
  ASSERT_EQ(::statfs(folder_.path().c_str(), &info), 0);
  EXPECT_EQ(MustOpen(pool_path(), kPoolBytes)->written_back(), info.f_type != TMPFS_MAGIC);
  ASSERT_EQ(::statfs("/dev/shm", &info), 0);
  const std::string path = "/dev/shm/erda-pool-test-" + std::to_string(::getpid());
  EXPECT_EQ(MustOpen(path, kPoolBytes)->written_back(), info.f_type != TMPFS_MAGIC);
  ::unlink(path.c_str());
  EXPECT_FALSE(MustOpen("dram:", kPoolBytes)->written_back());
}

}  // namespace
}  // namespace erda::nvm
