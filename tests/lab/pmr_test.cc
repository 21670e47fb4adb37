// The persistent memory region of the lab's NVMe disk (tools/rdma-lab --pmr).
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "nvm/front.h"
#include "nvm/writer.h"

namespace erda {
namespace {

std::string Lab(const std::string& name) {
  const char* const value = std::getenv(("ERDA_LAB_" + name).c_str());
  return value == nullptr ? "" : value;
}

std::unique_ptr<nvm::Pool> OpenRegion() {
  auto region = nvm::OpenFront({.address = Lab("PMR") + "_wc", .least_size = 1 << 20});
  EXPECT_TRUE(region.ok()) << region.status().ToString();
  return region.ok() ? *std::move(region) : nullptr;
}

// Blocks go into the region round and round. Each has its number and a pattern.
constexpr uint64_t kBlockBytes = 1000;
constexpr uint64_t kBlocks = 700;
struct Block {
  explicit Block(uint64_t number) {
    std::memset(bytes, static_cast<int>(number % 251), sizeof(bytes));
    std::memcpy(bytes, &number, sizeof(number));
  }
  char bytes[kBlockBytes];
};
uint64_t OffsetOf(uint64_t number) { return 64 + number % kBlocks * kBlockBytes; }

// A file of the host has the number of the last block that was fenced.
class FencedNumber {
 public:
  FencedNumber() : path_(std::filesystem::path(Lab("OUT")) / "fenced") {}
  void Write(uint64_t number) {
    std::ofstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&number), sizeof(number));
    ASSERT_TRUE(file.flush());
  }
  [[nodiscard]] uint64_t Read() const {
    uint64_t number = 0;
    std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(&number), sizeof(number));
    return number;
  }

 private:
  const std::filesystem::path path_;
};

// In the first boot it writes until the power is cut. In the second one it looks for what was fenced.
TEST(PmrCutLab, FencedBytesSurviveAPowerCut) {
  const auto region = OpenRegion();
  ASSERT_NE(region, nullptr);
  FencedNumber fenced;
  if (Lab("BOOT") == "1") {
    nvm::Writer writer(*region);
    for (uint64_t number = 1; !writer.failed(); ++number) {
      const Block block(number);
      writer.Write(OffsetOf(number), AsBytes({block.bytes, sizeof(block.bytes)}));
      writer.Persist(OffsetOf(number), sizeof(block.bytes));
      fenced.Write(number);
      if (number == 2 * kBlocks) std::puts("cut now"), std::fflush(stdout);
    }
    FAIL() << "a fence found the region broken";
  }
  const uint64_t last = fenced.Read();
  ASSERT_GE(last, 2 * kBlocks);
  // Number last + 1 may have been under way, in the place of the oldest block.
  for (uint64_t number = last + 2 - kBlocks; number <= last; ++number) {
    const Block block(number);
    ASSERT_EQ(std::memcmp(region->bytes().data() + OffsetOf(number), block.bytes, sizeof(block.bytes)), 0)
        << "block " << number << " of " << last;
  }
  std::ofstream(std::filesystem::path(Lab("OUT")) / "found") << last;
}

// Why PMRDirect needs a NIC whose driver takes the region as a dma-buf. To register ordinary memory, the kernel pins
// its pages, and memory of a PCI device has none. Soft-RoCE takes no dma-buf. If one of these tests fails, Soft-RoCE
// can do more than docs/benchmarks/pmr.md says.
class PmrLab : public testing::Test {
 protected:
  void SetUp() override {
    region_ = OpenRegion();
    ASSERT_NE(region_, nullptr);
    int count = 0;
    devices_ = ::ibv_get_device_list(&count);
    ASSERT_GT(count, 0);
    context_ = ::ibv_open_device(devices_[0]);
    ASSERT_NE(context_, nullptr);
    domain_ = ::ibv_alloc_pd(context_);
    ASSERT_NE(domain_, nullptr);
  }
  ~PmrLab() override {
    if (domain_ != nullptr) ::ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ::ibv_close_device(context_);
    if (devices_ != nullptr) ::ibv_free_device_list(devices_);
  }
  std::unique_ptr<nvm::Pool> region_;
  ibv_device** devices_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
};

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

TEST_F(PmrLab, SoftRoceDoesNotRegisterMemoryOfAPciDevice) {
  void* const at = const_cast<std::byte*>(region_->bytes().data());
  errno = 0;
  ibv_mr* const registered = ::ibv_reg_mr(domain_, at, 1 << 20, kAccess);
  EXPECT_EQ(registered, nullptr);
  EXPECT_EQ(errno, EFAULT) << std::strerror(errno);
}

TEST_F(PmrLab, SoftRoceTakesNoDmaBuf) {
  errno = 0;
  ibv_mr* const registered = ::ibv_reg_dmabuf_mr(domain_, 0, 1 << 20, 0, region_->view().fd, kAccess);
  EXPECT_EQ(registered, nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP) << std::strerror(errno);
}

}  // namespace
}  // namespace erda
