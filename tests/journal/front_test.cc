#include "journal/front.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

class FrontTest : public testing::Test {
 protected:
  static constexpr uint32_t kShards = 2;

  FrontTest() { Fill(2 * Front::kPartBytesMin, '\0'); }
  void Fill(uint64_t size, char c) const { std::ofstream(path_, std::ios::binary) << std::string(size, c); }
  [[nodiscard]] std::unique_ptr<Front> MustOpen() const {
    auto front = Front::Open(path_, kShards, true);
    EXPECT_TRUE(front.ok()) << front.status().ToString();
    return front.ok() ? *std::move(front) : nullptr;
  }
  static std::vector<RingIdentity> Shards(uint8_t secret = 1) {
    std::vector<RingIdentity> shards(kShards, kRingIdentity);
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      shards[shard].shard = shard;
      shards[shard].secret[0] = secret;
    }
    return shards;
  }
  void ExpectRefuses(bool needed, const std::string& part) const {
    const Status status = MustOpen()->Take(Shards(2), needed);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("front " + path_), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }

  const TemporaryFolder folder_;
  const std::string path_ = (folder_ / "front").string();
};

TEST_F(FrontTest, ItHasRoomForEachShard) {
  Fill(2 * Front::kPartBytesMin - 1, '\0');
  EXPECT_EQ(Front::Open(path_, kShards, true).status().code(), Code::kInvalidArgument);
}

TEST_F(FrontTest, BlankFrontGetsPartsThatTheNextOneFinds) {
  const std::byte byte{7};
  {
    const auto front = MustOpen();
    ASSERT_TRUE(front->Take(Shards(), false).ok());
    EXPECT_EQ(front->part(1).epoch(), 0U);
    front->Format(Shards()[1], 5, 160);
    ASSERT_TRUE(front->part(1).Append(160, OnePart(std::span(&byte, 1))));
  }
  const auto front = MustOpen();
  ASSERT_TRUE(front->Take(Shards(), true).ok());
  EXPECT_EQ(front->part(0).epoch(), 0U);
  EXPECT_EQ(front->part(0).end(), 0U);
  EXPECT_EQ(front->part(1).epoch(), 5U);
  EXPECT_EQ(front->part(1).end(), 161U);
}

// The bytes of a journal may be nowhere else.
TEST_F(FrontTest, FrontOfAnotherJournalIsRefused) {
  ASSERT_TRUE(MustOpen()->Take(Shards(), false).ok());
  ExpectRefuses(false, "it is not empty");
  ExpectRefuses(true, "the newest bytes are in another front");
  ASSERT_TRUE(MustOpen()->Take(Shards(), true).ok()) << "and it is as it was";
}

TEST_F(FrontTest, OtherContentIsRefused) {
  Fill(2 * Front::kPartBytesMin, 'x');
  ExpectRefuses(false, "it is not empty");
  Fill(2 * Front::kPartBytesMin, '\0');
  ExpectRefuses(true, "the newest bytes are in another front");
}

TEST_F(FrontTest, ClearedFrontIsFree) {
  {
    const auto front = MustOpen();
    ASSERT_TRUE(front->Take(Shards(), false).ok());
    front->Clear();
  }
  EXPECT_TRUE(MustOpen()->Take(Shards(2), false).ok());
}

}  // namespace
}  // namespace erda::journal
