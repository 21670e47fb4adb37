#include "nvm/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/map_shared.h"
#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "nvm/fixture.h"

namespace erda::nvm {
namespace {

constexpr size_t kPage = 4096;

// Returns how many faults it takes to store into each page.
int64_t FaultsOfStores(std::span<std::byte> bytes) {
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &before);
  for (size_t at = 0; at < bytes.size(); at += kPage) {
    auto* const byte = reinterpret_cast<volatile char*>(bytes.data() + at);
    *byte = *byte;
  }
  ::getrusage(RUSAGE_THREAD, &after);
  return after.ru_minflt - before.ru_minflt;
}

// Another process's mapping of the same memory, in this one.
class SecondMapping {
 public:
  SecondMapping(const MemoryView& view, size_t size) : bytes_(MapShared(view.fd, size, true)) {}
  SecondMapping(const SecondMapping&) = delete;
  SecondMapping& operator=(const SecondMapping&) = delete;
  ~SecondMapping() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Returns true if this kernel makes large pages of a memfd.
bool KernelMakesLargePages() {
  auto memory = SharedMemory::Create("probe", kLargePage);
  if (!memory.ok()) return false;
  memory->bytes()[0] = std::byte{1};
  constexpr int kCollapse = 25;
  return ::madvise(memory->bytes().data(), kLargePage, kCollapse) == 0;
}

// A sanitizer's memory beside each page has faults, too.
class PagesNoSanitizerTest : public testing::Test {
 protected:
  static constexpr size_t kSize = 4 * kLargePage;
  void SetUp() override {
    auto memory = SharedMemory::Create("pages", kSize);
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    memory_ = *std::move(memory);
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return memory_.bytes(); }

  SharedMemory memory_;
};

TEST_F(PagesNoSanitizerTest, AStoreIntoAPageThatNobodyMadeFaults) { EXPECT_EQ(FaultsOfStores(bytes()), kSize / kPage); }

TEST_F(PagesNoSanitizerTest, AStoreIntoAMadePageDoesNotFault) {
  MakePages(bytes());
  EXPECT_EQ(FaultsOfStores(bytes()), 0);
}

TEST_F(PagesNoSanitizerTest, OnlyThePagesOfTheRangeAreMade) {
  MakePages(bytes().subspan(kPage + 1, kPage));  // the second page and the third
  EXPECT_EQ(FaultsOfStores(bytes().subspan(kPage, 2 * kPage)), 0);
  EXPECT_EQ(FaultsOfStores(bytes().first(kPage)), 1);
  EXPECT_EQ(FaultsOfStores(bytes().subspan(3 * kPage, kPage)), 1);
}

TEST_F(PagesNoSanitizerTest, AnEmptyRangeHasNoPages) {
  MakePages(bytes().first(0));
  MakeLargePages(bytes().first(0));
  EXPECT_EQ(FaultsOfStores(bytes().first(kPage)), 1);
}

TEST_F(PagesNoSanitizerTest, AnotherMappingHasOneFaultForALargePage) {
  const SecondMapping other(memory_.view(), kSize);
  ASSERT_EQ(other.bytes().size(), kSize);
  MakeLargePages(bytes());
  EXPECT_LE(FaultsOfStores(bytes()), kSize / kLargePage);
  const int64_t faults = FaultsOfStores(other.bytes());
  if (KernelMakesLargePages()) {
    EXPECT_LE(faults, kSize / kLargePage);
  } else {
    EXPECT_LE(faults, kSize / kPage);
  }
}

TEST_F(PagesNoSanitizerTest, PartsOfALargePageAreMadePageByPage) {
  MakeLargePages(bytes().subspan(kLargePage - 3 * kPage, kLargePage));
  EXPECT_EQ(FaultsOfStores(bytes().subspan(kLargePage - 3 * kPage, kLargePage)), 0);
  EXPECT_EQ(FaultsOfStores(bytes().first(kPage)), 1);
}

TEST_F(PagesNoSanitizerTest, NoByteChanges) {
  for (size_t at = 0; at < kSize; at += 1000) bytes()[at] = static_cast<std::byte>(at / 1000);
  const std::vector<std::byte> before(bytes().begin(), bytes().end());
  MakePages(bytes().first(kLargePage));
  MakeLargePages(bytes().subspan(kPage));
  EXPECT_TRUE(std::ranges::equal(bytes(), before));
}

TEST_F(PagesNoSanitizerTest, MemoryThatIsNotMappedIsLeftAlone) {
  std::byte* const begin = bytes().data();
  ASSERT_EQ(::munmap(begin + kLargePage, kLargePage), 0);
  MakeLargePages(bytes());  // the kernel refuses the second large page
  EXPECT_EQ(FaultsOfStores(bytes().first(kLargePage)), 0);
  ASSERT_EQ(::mmap(begin + kLargePage, kLargePage, PROT_READ, MAP_SHARED | MAP_FIXED, memory_.view().fd, kLargePage),
            begin + kLargePage);  // for munmap
}

// --- Pool::MakeReady

class ReadyPoolNoSanitizerTest : public PoolTest {};

TEST_F(ReadyPoolNoSanitizerTest, StoresIntoReadyBytesOfADramPoolDoNotFault) {
  const auto pool = MustOpen("dram:", 4 * kLargePage);
  ASSERT_NE(pool, nullptr);
  EXPECT_TRUE(pool->takes_large_pages());
  pool->MakeReady(kLargePage, 2 * kLargePage);
  EXPECT_LE(FaultsOfStores(pool->view().bytes.subspan(kLargePage, 2 * kLargePage)), 2);
}

// The kernel writes each page that is made to the disk.
TEST_F(ReadyPoolNoSanitizerTest, NoPagesAreMadeForAFileOnADisk) {
  const auto pool = MustOpen(pool_path(), 4 * kLargePage);
  ASSERT_NE(pool, nullptr);
  ASSERT_EQ(pool->takes_large_pages(), !pool->written_back());
  pool->MakeReady(kLargePage, kLargePage);
  if (pool->written_back()) {
    EXPECT_GT(FaultsOfStores(pool->view().bytes.subspan(kLargePage, kLargePage)), 0);
  }
}

TEST_F(ReadyPoolNoSanitizerTest, StoresIntoReadyBytesOfAFileInMemoryDoNotFault) {
  const std::string path = "/dev/shm/erda-pages-test-" + std::to_string(::getpid());
  const auto pool = MustOpen(path, 4 * kLargePage);
  ::unlink(path.c_str());
  ASSERT_NE(pool, nullptr);
  ASSERT_TRUE(pool->takes_large_pages());
  pool->MakeReady(kLargePage, 2 * kLargePage);
  EXPECT_LE(FaultsOfStores(pool->view().bytes.subspan(kLargePage, 2 * kLargePage)), 2);
}

}  // namespace
}  // namespace erda::nvm
