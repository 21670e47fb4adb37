// The memory of its clients that a server of the shm fabric maps. It refuses memory that they could take away.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "base/temporary_folder.h"
#include "fabric/fixture.h"
#include "fabric/shm/memory_map.h"

namespace erda::fabric {
namespace {

using shm::MemoryMaps;

constexpr size_t kHugePage = size_t{2} << 20;

UniqueFd Memfd(unsigned flags, size_t size, int seals) {
  UniqueFd fd(::memfd_create("of-a-client", MFD_CLOEXEC | flags));
  EXPECT_TRUE(fd);
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  if (seals != 0) {
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

// Returns the outcome of Map for memory of a client.
Status Mapped(const UniqueFd& fd, size_t size) {
  MemoryMaps maps;
  return maps.Map(fd, size, true, MemoryMaps::Trust::kPeerMayNotHarm).status();
}

void ExpectRefused(const Status& status, std::string_view why) {
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  EXPECT_NE(status.message().find(why), std::string_view::npos) << status.ToString();
}

TEST(MemoryMapTest, MemfdSealedAgainstShrinkingIsMapped) {
  const UniqueFd fd = Memfd(MFD_ALLOW_SEALING, kHugePage, F_SEAL_SHRINK);
  EXPECT_TRUE(Mapped(fd, kHugePage).ok());
}

TEST(MemoryMapTest, UnsealedMemfdIsRefused) {
  ExpectRefused(Mapped(Memfd(MFD_ALLOW_SEALING, kHugePage, 0), kHugePage), "not sealed against shrinking");
  ExpectRefused(Mapped(Memfd(MFD_ALLOW_SEALING, kHugePage, F_SEAL_GROW), kHugePage), "not sealed against shrinking");
  ExpectRefused(Mapped(Memfd(0, kHugePage, 0), kHugePage), "not sealed against shrinking");
}

// If its owner punched out a page, this process would get SIGBUS, since no other huge page is free.
TEST(MemoryMapTest, SealedMemfdOnHugePagesIsRefused) {
  const UniqueFd fd(::memfd_create("of-a-client", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!fd) GTEST_SKIP() << "this kernel has no huge pages";
  ASSERT_EQ(::ftruncate(fd.get(), kHugePage), 0);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  ExpectRefused(Mapped(fd, kHugePage), "huge pages");
}

TEST(MemoryMapTest, FileIsRefusedOnAnyFileSystem) {
  const TemporaryFolder folder;
  for (const std::string& path : {(folder / "file").string(), "/dev/shm/erda-map-test." + std::to_string(getpid())}) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) continue;  // There is no /dev/shm here.
    ::unlink(path.c_str());
    ASSERT_EQ(::ftruncate(fd.get(), kHugePage), 0);
    ExpectRefused(Mapped(fd, kHugePage), "not sealed against shrinking");
  }
}

TEST(MemoryMapTest, MemfdThatIsShorterThanItsOwnerSaysIsRefused) {
  ExpectRefused(Mapped(Memfd(MFD_ALLOW_SEALING, 4096, F_SEAL_SHRINK), 8192), "another size than the peer says");
}

// The owner shrinks the memory, and then seals it. A server that measured the memory before it checked the seal would
// map pages that do not exist.
TEST(MemoryMapTest, MemoryThatShrinksWhileItIsExaminedIsNotMapped) {
  constexpr size_t kSize = 8192;
  MemoryMaps maps;
  std::atomic<int> shared{-1};
  std::atomic<bool> stop{false};
  std::thread owner([&] {
    while (!stop.load(std::memory_order_acquire)) {
      const int fd = shared.exchange(-1, std::memory_order_acq_rel);
      if (fd < 0) continue;
      EXPECT_EQ(::ftruncate(fd, 0), 0);
      EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
      ::close(fd);
    }
  });
  for (int round = 0; round < 20'000 && !testing::Test::HasFailure(); ++round) {
    const UniqueFd fd = Memfd(MFD_ALLOW_SEALING, kSize, 0);
    shared.store(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0), std::memory_order_release);
    for (int wait = 0; wait < round % 64; ++wait) std::atomic_signal_fence(std::memory_order_seq_cst);
    const auto mapped = maps.Map(fd, kSize, true, MemoryMaps::Trust::kPeerMayNotHarm);
    struct stat info {};
    EXPECT_EQ(::fstat(fd.get(), &info), 0);
    EXPECT_FALSE(mapped.ok()) << "round " << round << ": of " << kSize << " bytes " << info.st_size << " are there";
    while (shared.load(std::memory_order_acquire) >= 0) std::this_thread::yield();
  }
  stop.store(true, std::memory_order_release);
  owner.join();
}

// Punched-out pages of tmpfs read as zeroes. An end that finds them continues, or closes the channel.
class PunchTest : public FabricTest {};

// Of shm, which is the first: only over shm one end maps the other's memory.
INSTANTIATE_TEST_SUITE_P(Fabrics, PunchTest, testing::Values(RealWorlds().front()), KindName);

TEST_P(PunchTest, ServerOutlivesMemoryThatItsClientPunchesOut) {
  ASSERT_EQ(client_.fabric->scheme(), "shm");
  Connect();
  for (uint32_t round = 0; round < 100; ++round) {
    ASSERT_EQ(::fallocate(client_.memory.view().fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                          static_cast<off_t>(kMemoryBytes)),
              0);
    const std::string written = Pattern(5000, round);
    Put(server_.bytes(0, written.size()), written);
    ASSERT_TRUE(Post(*server_.channel, Write(server_, 0, written.size(), 4000 + round, round)).ok());
    ASSERT_TRUE(Post(*server_.channel, Read(server_, 10'000, written.size(), 4000 + round, round)).ok());
    ASSERT_TRUE(PumpUntil(server_, OpKind::kRead));
    EXPECT_EQ(server_.text(10'000, written.size()), written);
    EXPECT_EQ(client_.text(4000 + round, written.size()), written);
    ASSERT_TRUE(Post(*server_.channel, Read(server_, 10'000, 8, 1 << 20, round)).ok());
    EXPECT_EQ(server_.text(10'000, 8), std::string(8, '\0'));
    ASSERT_TRUE(PumpUntil(server_, OpKind::kRead, 2));
    server_.events.clear();
  }
}

}  // namespace
}  // namespace erda::fabric
