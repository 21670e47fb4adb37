// The rights that one end of a simulated connection gives to the other one.
#include "fabric/sim/end.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace erda::fabric {
namespace {

class SimEndTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 4096;
  // The regions that the end offers, by their number.
  static constexpr uint32_t kToRead = 0;
  static constexpr uint32_t kToWrite = 1;
  static constexpr uint32_t kWithWindows = 2;
  // A window into the middle of the region with windows.
  static constexpr uint32_t kKey = 5;
  static constexpr uint64_t kWindowAt = 1024;
  static constexpr uint64_t kWindowBytes = 512;

  SimEndTest() {
    end_.offer = {&to_read_, &to_write_, &with_windows_};
    end_.windows[kKey] = {&with_windows_, kWindowAt, kWindowBytes};
  }
  [[nodiscard]] bool Permits(OpKind kind, RemoteAddress remote, size_t size) {
    WorkRequest request;
    request.kind = kind;
    request.local = std::span(local_).first(size);
    request.remote = remote;
    return end_.Permits(request);
  }

  std::vector<std::byte> local_{kBytes + 1};
  std::array<std::byte, kBytes> bytes_{};
  const std::shared_ptr<SimNode> node_ = std::make_shared<SimNode>();
  SimRegion to_read_{node_, bytes_, Access::kRemoteRead};
  SimRegion to_write_{node_, bytes_, Access::kRemoteReadWrite};
  SimRegion with_windows_{node_, bytes_, Access::kRemoteReadWindows};
  SimEnd end_;
};

TEST_F(SimEndTest, RegionsAreReadWithinTheirBounds) {
  for (const uint32_t region : {kToRead, kToWrite, kWithWindows}) {
    EXPECT_TRUE(Permits(OpKind::kRead, {.region = region}, kBytes)) << region;
    EXPECT_TRUE(Permits(OpKind::kRead, {.region = region, .offset = kBytes - 1}, 1)) << region;
    EXPECT_FALSE(Permits(OpKind::kRead, {.region = region, .offset = 1}, kBytes)) << region;
    EXPECT_FALSE(Permits(OpKind::kRead, {.region = region}, kBytes + 1)) << region;
    EXPECT_FALSE(Permits(OpKind::kRead, {.region = region, .offset = UINT64_MAX}, 2)) << region;
  }
  EXPECT_FALSE(Permits(OpKind::kRead, {.region = 3}, 1));
}

TEST_F(SimEndTest, OnlyARegionToWriteIsWrittenWithoutAWindow) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kWriteImm}) {
    EXPECT_FALSE(Permits(kind, {.region = kToRead}, 8));
    EXPECT_TRUE(Permits(kind, {.region = kToWrite}, 8));
    EXPECT_FALSE(Permits(kind, {.region = kToWrite, .offset = kBytes - 7}, 8));
    EXPECT_FALSE(Permits(kind, {.region = kWithWindows, .offset = kWindowAt}, 8));
  }
}

TEST_F(SimEndTest, WindowPermitsWritesWithinIt) {
  const auto permits = [&](uint64_t offset, size_t size) {
    return Permits(OpKind::kWrite, {kWithWindows, offset, kKey}, size);
  };
  EXPECT_TRUE(permits(kWindowAt, kWindowBytes));
  EXPECT_TRUE(permits(kWindowAt + kWindowBytes - 1, 1));
  EXPECT_FALSE(permits(kWindowAt - 1, 2));
  EXPECT_FALSE(permits(kWindowAt, kWindowBytes + 1));
  EXPECT_FALSE(permits(kWindowAt + kWindowBytes, 1));
}

TEST_F(SimEndTest, WindowPermitsNothingElse) {
  EXPECT_FALSE(Permits(OpKind::kRead, {kWithWindows, kWindowAt, kKey}, 8));
  EXPECT_FALSE(Permits(OpKind::kWrite, {kWithWindows, kWindowAt, kKey + 1}, 8)) << "no window has this key";
  EXPECT_FALSE(Permits(OpKind::kWrite, {kToWrite, kWindowAt, kKey}, 8)) << "a window of another region";
  end_.windows.erase(kKey);
  EXPECT_FALSE(Permits(OpKind::kWrite, {kWithWindows, kWindowAt, kKey}, 8));
}

TEST_F(SimEndTest, OperationsWithoutRemoteBytesNeedNoRight) {
  EXPECT_TRUE(Permits(OpKind::kSend, {.region = 3}, 8));
  EXPECT_TRUE(Permits(OpKind::kWriteImm, {.region = 3}, 0));
}

TEST_F(SimEndTest, BytesOfARequestLieAtItsOffset) {
  WorkRequest request;
  request.remote = {.region = kToWrite, .offset = 24};
  EXPECT_EQ(end_.BytesOf(request), bytes_.data() + 24);
}

}  // namespace
}  // namespace erda::fabric
