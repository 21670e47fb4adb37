// The memory windows of a channel, from their allocation until the device forgets them.
#include "fabric/verbs/windows.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "verbs/fake_rdma.h"

namespace erda::fabric::verbs {
namespace {

class WindowsTest : public testing::Test {
 protected:
  // Returns the window's key.
  uint32_t Allocate(UniqueMr own = nullptr) {
    const auto key = windows_.Allocate(rdma_.domain(), memory_, &region_, std::move(own));
    EXPECT_TRUE(key.ok()) << key.status().ToString();
    return key.ok() ? *key : 0;
  }
  static UniqueMr Register() {
    static std::array<std::byte, 8> bytes;
    constexpr int kAccess = IBV_ACCESS_MW_BIND;  // int: the macro ibv_reg_mr mixes two enumerations
    return UniqueMr(ibv_reg_mr(FakeRdma::Instance().domain(), bytes.data(), bytes.size(), kAccess));
  }

  FakeRdma rdma_;
  std::array<std::byte, 100> memory_{};
  ibv_mr region_{};
  Windows windows_;
};

TEST(VerbsPiece, PieceIsInsideItsRegionAndNotEmpty) {
  EXPECT_TRUE(IsPiece(100, 0, 100));
  EXPECT_TRUE(IsPiece(100, 99, 1));
  EXPECT_TRUE(IsPiece(100, 0, 1));
  EXPECT_FALSE(IsPiece(100, 0, 0));
  EXPECT_FALSE(IsPiece(100, 100, 0));
  EXPECT_FALSE(IsPiece(100, 0, 101));
  EXPECT_FALSE(IsPiece(100, 1, 100));
  EXPECT_FALSE(IsPiece(100, 100, 1));
  EXPECT_FALSE(IsPiece(100, UINT64_MAX, 2)) << "the end overflows";
  EXPECT_FALSE(IsPiece(100, 2, UINT64_MAX)) << "the end overflows";
  EXPECT_FALSE(IsPiece(0, 0, 1));
}

TEST_F(WindowsTest, BindingCoversTheBytesForWritesAlone) {
  const Window* const window = windows_.Find(Allocate());
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(window->binding.mr, &region_);
  EXPECT_EQ(window->binding.addr, reinterpret_cast<uint64_t>(memory_.data()));
  EXPECT_EQ(window->binding.length, memory_.size());
  EXPECT_EQ(window->binding.mw_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE});
}

TEST_F(WindowsTest, KeyIsTheNextKeyOfTheWindow) {
  const uint32_t key = Allocate();
  EXPECT_EQ(key, ibv_inc_rkey(windows_.Find(key)->window->rkey));
  EXPECT_NE(Allocate(), key);
}

TEST_F(WindowsTest, WindowWithASeparateRegionIsBoundThere) {
  UniqueMr own = Register();
  const ibv_mr* const region = own.get();
  const uint32_t key = Allocate(std::move(own));
  EXPECT_EQ(windows_.Find(key)->binding.mr, region);
  EXPECT_EQ(rdma_.objects, 2);
  windows_.Free(key);
  EXPECT_EQ(rdma_.objects, 0) << "the region goes with its window";
}

TEST_F(WindowsTest, FreedWindowIsUnknown) {
  const uint32_t first = Allocate();
  const uint32_t second = Allocate();
  windows_.Free(first);
  EXPECT_EQ(windows_.Find(first), nullptr);
  EXPECT_NE(windows_.Find(second), nullptr);
  EXPECT_EQ(rdma_.freed_windows.size(), 1U);
  windows_.Free(first);
  EXPECT_EQ(rdma_.freed_windows.size(), 1U);
}

TEST_F(WindowsTest, AllWindowsAreFreedInTheEnd) {
  {
    Windows windows;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(windows.Allocate(rdma_.domain(), memory_, &region_, Register()).ok());
    }
    EXPECT_EQ(rdma_.objects, 6);
  }
  EXPECT_EQ(rdma_.freed_windows.size(), 3U);
  EXPECT_EQ(rdma_.objects, 0);
}

TEST_F(WindowsTest, DeviceWithoutRoomGivesNoWindow) {
  rdma_.window_error = ENOMEM;
  const auto key = windows_.Allocate(rdma_.domain(), memory_, &region_, Register());
  EXPECT_FALSE(key.ok());
  EXPECT_NE(key.status().message().find("memory window"), std::string_view::npos) << key.status().ToString();
  EXPECT_EQ(rdma_.objects, 0) << "the region stayed";
}

}  // namespace
}  // namespace erda::fabric::verbs
