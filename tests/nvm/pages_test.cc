#include "nvm/pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
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
  return after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
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
  EXPECT_EQ(pool->large_pages(), LargePages::kInMemory);
  pool->MakeReady(kLargePage, 2 * kLargePage);
  EXPECT_LE(FaultsOfStores(pool->view().bytes.subspan(kLargePage, 2 * kLargePage)), 2);
}

// --- Pool::Populate

TEST_F(ReadyPoolNoSanitizerTest, StoresIntoAPopulatedPoolDoNotFault) {
  for (const std::string& path : {std::string("dram:"), pool_path()}) {
    const auto pool = MustOpen(path, 4 * kLargePage + kPage);
    ASSERT_NE(pool, nullptr);
    const std::span<std::byte> bytes = pool->view().bytes;
    bytes[kPage] = std::byte{7};
    ASSERT_TRUE(pool->Populate().ok()) << path;
    EXPECT_EQ(FaultsOfStores(bytes.subspan(2 * kPage)), 0) << path;
    EXPECT_EQ(bytes[kPage], std::byte{7});
  }
}

TEST_F(ReadyPoolNoSanitizerTest, APoolThatDoesNotFitIntoTheMemoryIsNotPopulated) {
  const auto pool = MustOpen("dram:", uint64_t{1} << 42);
  ASSERT_NE(pool, nullptr);
  const Status status = pool->Populate();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("takes 4398046511104 bytes of memory, and only "), std::string_view::npos)
      << status.message();
}

// --- Pool::MakeReady of a file

// A pool in a file of the temporary folder, which is on a disk or in memory.
class FilePoolNoSanitizerTest : public ReadyPoolNoSanitizerTest {
 protected:
  static constexpr uint64_t kSize = 8 * kLargePage;
  void SetUp() override {
    pool_ = MustOpen(pool_path(), kSize);
    ASSERT_NE(pool_, nullptr);
    on_disk_ = pool_->written_back();
    large_ = pool_->large_pages() == LargePages::kOnDisk;
    ASSERT_EQ(pool_->large_pages() == LargePages::kInMemory, !on_disk_);
    ASSERT_EQ(large_, on_disk_ && KernelEnlarges(folder_.path().string()));
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return pool_->view().bytes; }

  std::unique_ptr<Pool> pool_;
  bool on_disk_ = false;
  bool large_ = false;  // On a disk, and the kernel makes large pages there.
};

TEST_F(FilePoolNoSanitizerTest, OnADiskPagesThatNobodyEnlargedAreNotMadeAhead) {
  pool_->MakeReady(kLargePage, kLargePage);
  if (on_disk_) {
    EXPECT_GE(FaultsOfStores(bytes().subspan(kLargePage, kLargePage)), static_cast<int64_t>(kLargePage / kPage) - 1);
  }
}

TEST_F(FilePoolNoSanitizerTest, StoresIntoEnlargedBytesFaultOnceForEachLargePage) {
  pool_->Enlarge(kLargePage, 6 * kLargePage);
  pool_->MakeReady(kLargePage, 2 * kLargePage);
  const int64_t faults_ready = FaultsOfStores(bytes().subspan(kLargePage, 2 * kLargePage));
  const int64_t faults = FaultsOfStores(bytes().subspan(3 * kLargePage, 4 * kLargePage));
  if (large_) {
    EXPECT_EQ(faults_ready, 0);
    EXPECT_LE(faults, 2 * 4);  // for each large page one to read, and one to write
    const SecondMapping other(pool_->view(), kSize);
    EXPECT_LE(FaultsOfStores(other.bytes().subspan(kLargePage, 6 * kLargePage)), 2 * 6);
  }
}

// As an opening that looks at each segment's header.
TEST_F(FilePoolNoSanitizerTest, PagesThatWereOnlyReadDoNotKeepLargeOnesAway) {
  for (uint64_t at = 0; at < kSize; at += kLargePage / 2) EXPECT_EQ(bytes()[at], std::byte{0});
  pool_->Enlarge(0, kSize);
  const int64_t faults = FaultsOfStores(bytes());
  if (large_) {
    EXPECT_LE(faults, static_cast<int64_t>(2 * kSize / kLargePage));
  }
}

TEST_F(FilePoolNoSanitizerTest, EnlargingChangesNoByte) {
  for (uint64_t at = 0; at < kSize; at += 300'000) bytes()[at] = static_cast<std::byte>(at / 300'000 + 1);
  ASSERT_TRUE(pool_->Sync(0, kSize).ok());
  for (uint64_t at = 0; at < kSize; at += 600'000) bytes()[at] = bytes()[at];  // every second one is changed again
  pool_->Enlarge(kPage, kSize - kLargePage);                                   // the last part is beside the range
  pool_->MakeReady(0, kSize);
  for (uint64_t at = 0; at < kSize; at += 300'000) {
    ASSERT_EQ(bytes()[at], static_cast<std::byte>(at / 300'000 + 1)) << at;
  }
}

TEST_F(FilePoolNoSanitizerTest, StoresOfAnotherThreadMeanwhileStay) {
  std::atomic<bool> done = false;
  std::thread enlarger([&] {
    while (!done) pool_->Enlarge(0, kSize);
  });
  const SecondMapping client(pool_->view(), kSize);
  for (uint64_t i = 0; i < 40'000; ++i) {
    const uint64_t at = i * 4099 * 7 % kSize;
    (i % 2 == 0 ? bytes() : client.bytes())[at] = static_cast<std::byte>(at % 251);
    EXPECT_EQ((i % 2 == 0 ? client.bytes() : bytes())[at], static_cast<std::byte>(at % 251)) << at;
  }
  done = true;
  enlarger.join();
  for (uint64_t i = 0; i < 40'000; ++i) {
    const uint64_t at = i * 4099 * 7 % kSize;
    ASSERT_EQ(bytes()[at], static_cast<std::byte>(at % 251)) << at;
  }
}

TEST(MemoryTest, RoomIsForHalfOfTheMachinesMemory) {
  EXPECT_TRUE(MemoryHasRoomFor(1 << 20));
  EXPECT_FALSE(MemoryHasRoomFor(UINT64_MAX));
}

TEST_F(ReadyPoolNoSanitizerTest, StoresIntoReadyBytesOfAFileInMemoryDoNotFault) {
  const std::string path = "/dev/shm/erda-pages-test-" + std::to_string(::getpid());
  const auto pool = MustOpen(path, 4 * kLargePage);
  ::unlink(path.c_str());
  ASSERT_NE(pool, nullptr);
  ASSERT_EQ(pool->large_pages(), LargePages::kInMemory);
  pool->MakeReady(kLargePage, 2 * kLargePage);
  EXPECT_LE(FaultsOfStores(pool->view().bytes.subspan(kLargePage, 2 * kLargePage)), 2);
}

}  // namespace
}  // namespace erda::nvm
