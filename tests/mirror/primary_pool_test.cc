// The pool of a primary without a server: its options, and the wait for the mirror before a clean close.
#include "mirror/primary_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "nvm/writer.h"
#include "server/crash_pool.h"

namespace erda::mirror {
namespace {

constexpr uint64_t kPrimaryBytes = 1 << 20;
constexpr Nanoseconds kStopTime = std::chrono::seconds(1);

const Membership::Keep kKeep = [](uint64_t /*id*/) { return Status(); };

class PrimaryPoolTest : public testing::Test {
 protected:
  std::unique_ptr<PrimaryPool> Make(LinksOptions links) {
    links.timeout = kStopTime;
    links.clock = &clock_;
    links.wait = [this](std::span<fabric::CompletionQueue* const> /*queues*/) {
      ++waits_;
      clock_.now += kStopTime / 4;
    };
    const bool names = links.sync && !links.goes_alone;
    auto pool = Try({.stream_bytes = journal::Stream::kCapacityMin,
                     .links = std::move(links),
                     .keep = names ? kKeep : Membership::Keep()});
    EXPECT_TRUE(pool.ok()) << pool.status().ToString();
    return *std::move(pool);
  }
  static Result<std::unique_ptr<PrimaryPool>> Try(const PrimaryOptions& options) {
    return PrimaryPool::Make(std::make_unique<server::CrashPool>(kPrimaryBytes), {}, 2, options);
  }
  static void Change(PrimaryPool& pool, uint32_t shard) {
    nvm::Writer writer(pool.OfShard(shard));
    writer.Write(format::kShardRecordsOffset, AsBytes("some bytes"));
    writer.Persist(format::kShardRecordsOffset, 10);
  }

  HandClock clock_;
  int waits_ = 0;
};

TEST_F(PrimaryPoolTest, OnlyAPrimaryThatStopsNamesItsMirror) {
  constexpr uint64_t kStream = journal::Stream::kCapacityMin;
  for (const bool sync : {false, true}) {
    for (const bool goes_alone : {false, true}) {
      const bool stops = sync && !goes_alone;
      const LinksOptions links{.sync = sync, .goes_alone = goes_alone};
      EXPECT_EQ(Try({kStream, links, 0, kKeep}).ok(), stops);
      EXPECT_EQ(Try({kStream, links, 7, kKeep}).ok(), stops);
      EXPECT_EQ(Try({kStream, links, 0, {}}).ok(), !stops);
      EXPECT_FALSE(Try({kStream, links, 7, {}}).ok());
      LinksOptions too_soon = links;
      too_soon.timeout = std::chrono::microseconds(999);
      EXPECT_FALSE(Try({kStream, too_soon, 0, stops ? kKeep : Membership::Keep()}).ok());
    }
  }
}

TEST_F(PrimaryPoolTest, ACloseWaitsForTheMirrorInAllShards) {
  const auto pool = Make({});
  EXPECT_TRUE(pool->AwaitMirror().ok()) << "all is held";
  Change(*pool, 1);
  EXPECT_TRUE(pool->Sync(0, pool->size()).ok()) << "any thread may call it";
  EXPECT_EQ(waits_, 0);
  EXPECT_EQ(pool->AwaitMirror().code(), Code::kUnavailable);
  EXPECT_GT(waits_, 3);
  EXPECT_TRUE(pool->links(1).stopped());
}

TEST_F(PrimaryPoolTest, WithoutAMirrorThatCountsACloseWaitsForNobody) {
  const auto pool = Make({.sync = false});
  Change(*pool, 0);
  Change(*pool, 1);
  EXPECT_TRUE(pool->AwaitMirror().ok());
  EXPECT_EQ(waits_, 0);
}

TEST_F(PrimaryPoolTest, APrimaryThatGoesOnAloneWaitsBeforeThat) {
  const auto pool = Make({.goes_alone = true});
  Change(*pool, 0);
  EXPECT_TRUE(pool->AwaitMirror().ok());
  EXPECT_GT(waits_, 3);
  EXPECT_TRUE(pool->links(0).alone());
}

}  // namespace
}  // namespace erda::mirror
