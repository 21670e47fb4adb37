// The regions that a peer offered over shm: where they are mapped, and which accesses the peer granted.
#include "fabric/shm/peer_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shared_memory.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

using shm::Greeting;
using shm::MemoryMaps;
using shm::PeerMemory;

class PeerMemoryTest : public testing::Test {
 protected:
  static constexpr size_t kReadableBytes = 4096;
  static constexpr size_t kWritableBytes = 8192;

  // The peer offers a region to read, and another one to read and write.
  PeerMemoryTest()
      : readable_(*SharedMemory::Create("readable", kReadableBytes)),
        writable_(*SharedMemory::Create("writable", kWritableBytes)) {
    greeting_.regions = 2;
    greeting_.region_sizes = {kReadableBytes, kWritableBytes};
    greeting_.region_access = {static_cast<uint32_t>(Access::kRemoteRead),
                               static_cast<uint32_t>(Access::kRemoteReadWrite)};
    fds_.emplace_back(::dup(readable_.view().fd_read_only));
    fds_.emplace_back(::dup(writable_.view().fd));
  }
  Result<PeerMemory> Map() { return PeerMemory::Map(greeting_, fds_, &maps_, MemoryMaps::Trust::kPeerMayNotHarm); }

  SharedMemory readable_;
  SharedMemory writable_;
  Greeting greeting_;
  std::vector<UniqueFd> fds_;
  MemoryMaps maps_;
};

TEST_F(PeerMemoryTest, ListsTheRegionsInTheOrderOfTheGreeting) {
  const PeerMemory memory = *Map();
  ASSERT_EQ(memory.regions().size(), 2U);
  EXPECT_EQ(memory.regions()[0].size, kReadableBytes);
  EXPECT_EQ(memory.regions()[0].access, Access::kRemoteRead);
  EXPECT_EQ(memory.regions()[1].size, kWritableBytes);
  EXPECT_EQ(memory.regions()[1].access, Access::kRemoteReadWrite);
}

TEST_F(PeerMemoryTest, FindsTheBytesOfThePeer) {
  const PeerMemory memory = *Map();
  readable_.bytes()[100] = std::byte{7};
  const std::byte* read = memory.Find({.region = 0, .offset = 100}, 1, Access::kRemoteRead);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(*read, std::byte{7});
  std::byte* written = memory.Find({.region = 1, .offset = 200}, 1, Access::kRemoteReadWrite);
  ASSERT_NE(written, nullptr);
  *written = std::byte{8};
  EXPECT_EQ(writable_.bytes()[200], std::byte{8});
}

TEST_F(PeerMemoryTest, RegionToReadIsNotFoundForWriting) {
  const PeerMemory memory = *Map();
  EXPECT_NE(memory.Find({.region = 0}, 8, Access::kRemoteRead), nullptr);
  EXPECT_EQ(memory.Find({.region = 0}, 8, Access::kRemoteReadWrite), nullptr);
  EXPECT_NE(memory.Find({.region = 1}, 8, Access::kRemoteRead), nullptr);
}

TEST_F(PeerMemoryTest, BytesOutsideOfTheRegionAreNotFound) {
  const PeerMemory memory = *Map();
  const auto is_found = [&](uint64_t offset, size_t size) {
    return memory.Find({.region = 0, .offset = offset}, size, Access::kRemoteRead) != nullptr;
  };
  EXPECT_TRUE(is_found(0, kReadableBytes));
  EXPECT_TRUE(is_found(kReadableBytes - 1, 1));
  EXPECT_FALSE(is_found(kReadableBytes - 1, 2));
  EXPECT_FALSE(is_found(0, kReadableBytes + 1));
  EXPECT_FALSE(is_found(kReadableBytes + 1, 0));
  EXPECT_FALSE(is_found(UINT64_MAX, 1));
  EXPECT_FALSE(is_found(1, SIZE_MAX));
}

TEST_F(PeerMemoryTest, RegionThatWasNotOfferedIsNotFound) {
  EXPECT_EQ(Map()->Find({.region = 2}, 0, Access::kRemoteRead), nullptr);
  EXPECT_EQ(PeerMemory().Find({.region = 0}, 0, Access::kRemoteRead), nullptr);
}

TEST_F(PeerMemoryTest, OneRegionThatCannotBeMappedFailsAll) {
  fds_[1] = UniqueFd(::memfd_create("not-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fds_[1].get(), kWritableBytes), 0);
  EXPECT_EQ(Map().status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace erda::fabric
