#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace erda {
namespace {

constexpr size_t kBytes = 3 * 4096;

SharedMemory Created(size_t size = kBytes) {
  auto memory = SharedMemory::Create("test", size);
  EXPECT_TRUE(memory.ok()) << memory.status().ToString();
  return *std::move(memory);
}

UniqueFd Duplicate(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

UniqueFd PlainMemfd(size_t size, unsigned flags) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | flags));
  EXPECT_TRUE(fd);
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

TEST(SharedMemoryTest, NewMemoryIsZeroed) {
  const SharedMemory memory = Created();
  ASSERT_EQ(memory.bytes().size(), kBytes);
  EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(SharedMemoryTest, ASizeNeedNotBeWholePages) {
  const SharedMemory memory = Created(100);
  EXPECT_EQ(memory.bytes().size(), 100U);
  EXPECT_TRUE(SharedMemory::Map(Duplicate(memory.view().fd), 100, true).ok());
}

TEST(SharedMemoryTest, NoMemoryAtAllIsRefused) {
  EXPECT_FALSE(SharedMemory::Create("test", 0).ok());
  EXPECT_FALSE(SharedMemory::Create("test", size_t{1} << 62).ok());
}

// Otherwise a process with a descriptor could open the memory again with more rights.
TEST(SharedMemoryTest, OnlyTheOwnerCanOpenIt) {
  for (const auto writers : {SharedMemory::Writers::kPeers, SharedMemory::Writers::kOwner}) {
    const auto memory = SharedMemory::Create("test", kBytes, writers);
    ASSERT_TRUE(memory.ok());
    for (const int fd : {memory->view().fd, memory->view().fd_read_only}) {
      struct stat info {};
      ASSERT_EQ(::fstat(fd, &info), 0);
      EXPECT_EQ(info.st_mode & 07777, 0600U);
    }
  }
}

TEST(SharedMemoryTest, BothDescriptorsShowTheSameBytes) {
  const SharedMemory memory = Created();
  auto writable = SharedMemory::Map(Duplicate(memory.view().fd), kBytes, true);
  auto readable = SharedMemory::Map(Duplicate(memory.view().fd_read_only), kBytes, false);
  ASSERT_TRUE(writable.ok()) << writable.status().ToString();
  ASSERT_TRUE(readable.ok()) << readable.status().ToString();
  memory.bytes()[5000] = std::byte{7};
  EXPECT_EQ(writable->bytes()[5000], std::byte{7});
  EXPECT_EQ(readable->bytes()[5000], std::byte{7});
  writable->bytes()[kBytes - 1] = std::byte{9};
  EXPECT_EQ(memory.bytes()[kBytes - 1], std::byte{9});
  EXPECT_EQ(readable->bytes()[kBytes - 1], std::byte{9});
}

TEST(SharedMemoryTest, AMappingOutlivesItsMaker) {
  SharedMemory memory = Created();
  memory.bytes()[1] = std::byte{3};
  auto peer = SharedMemory::Map(Duplicate(memory.view().fd_read_only), kBytes, false);
  memory = SharedMemory();
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->bytes()[1], std::byte{3});
}

TEST(SharedMemoryTest, NoOneCanChangeTheSize) {
  const SharedMemory memory = Created();
  for (const off_t size : {off_t{0}, off_t{kBytes - 1}, off_t{kBytes + 1}}) {
    EXPECT_EQ(::ftruncate(memory.view().fd, size), -1) << size;
    EXPECT_EQ(errno, EPERM);
  }
  EXPECT_EQ(::fcntl(memory.view().fd, F_ADD_SEALS, F_SEAL_WRITE), -1);  // Nor can it be sealed further.
}

TEST(SharedMemoryTest, TheReadOnlyDescriptorCannotBeMappedForWriting) {
  const SharedMemory memory = Created();
  const int fd = memory.view().fd_read_only;
  EXPECT_EQ(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  void* at = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(at, MAP_FAILED);
  EXPECT_EQ(::mprotect(at, kBytes, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(::munmap(at, kBytes), 0);
  EXPECT_EQ(::write(fd, "x", 1), -1);

  const auto peer = SharedMemory::Map(Duplicate(fd), kBytes, true);
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.status().code(), Code::kPermissionDenied);
}

TEST(SharedMemoryTest, MapRefusesMemoryThatItsMakerCouldShrink) {
  for (const unsigned flags : {0U, unsigned{MFD_ALLOW_SEALING}}) {
    const auto peer = SharedMemory::Map(PlainMemfd(kBytes, flags), kBytes, true);
    ASSERT_FALSE(peer.ok());
    EXPECT_EQ(peer.status().code(), Code::kInvalidArgument);
    EXPECT_NE(peer.status().message().find("not sealed"), std::string_view::npos) << peer.status().ToString();
  }
  UniqueFd grow_only = PlainMemfd(kBytes, MFD_ALLOW_SEALING);
  ASSERT_EQ(::fcntl(grow_only.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_FALSE(SharedMemory::Map(std::move(grow_only), kBytes, true).ok());
}

TEST(SharedMemoryTest, MapTakesAnyMemoryThatIsSealedAgainstShrinking) {
  UniqueFd fd = PlainMemfd(kBytes, MFD_ALLOW_SEALING);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(SharedMemory::Map(std::move(fd), kBytes, true).ok());
}

TEST(SharedMemoryTest, MapRefusesAnotherSize) {
  const SharedMemory memory = Created();
  for (const size_t size : {size_t{0}, kBytes - 1, kBytes + 1, size_t{1} << 63, SIZE_MAX}) {
    const auto peer = SharedMemory::Map(Duplicate(memory.view().fd), size, true);
    ASSERT_FALSE(peer.ok()) << size;
    EXPECT_EQ(peer.status().code(), Code::kInvalidArgument);
    EXPECT_NE(peer.status().message().find(std::to_string(kBytes)), std::string_view::npos);
  }
}

TEST(SharedMemoryTest, MapRefusesOtherDescriptors) {
  EXPECT_FALSE(SharedMemory::Map(UniqueFd(), kBytes, true).ok());
  EXPECT_FALSE(SharedMemory::Map(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), 0, true).ok());
  int pipes[2];
  ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
  const UniqueFd write_end(pipes[1]);
  EXPECT_FALSE(SharedMemory::Map(UniqueFd(pipes[0]), kBytes, false).ok());
}

TEST(SharedMemoryTest, AMoveTakesBytesAndDescriptors) {
  SharedMemory memory = Created();
  const MemoryView before = memory.view();
  SharedMemory moved = std::move(memory);
  EXPECT_EQ(moved.view().bytes.data(), before.bytes.data());
  EXPECT_EQ(moved.view().fd, before.fd);
  EXPECT_TRUE(memory.bytes().empty());  // NOLINT(bugprone-use-after-move): that is the promise
  SharedMemory assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.view().fd_read_only, before.fd_read_only);
  assigned.bytes()[0] = std::byte{1};  // Still mapped.
}

}  // namespace
}  // namespace erda
