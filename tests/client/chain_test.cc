// A get that goes from an unsettled version to older ones, when the old version of the entry was moved (I1).
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>

#include "base/test_hash.h"
#include "client/chain_fixture.h"
#include "format/control_block.h"
#include "format/object.h"
#include "tests/format/first_blocks.h"

namespace erda::client {
namespace {

TEST_F(ChainTest, GetTakesTheMovedOldVersionAndNothingOlder) {
  Write(kOlder, 1, format::kNoAddress, "older", 0);
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  Write(kMoved, 2, format::kNoAddress, "moved", format::ObjectHeader::kPersistedFlag);
  WriteNewest(kOriginal);
  Get();
  Serve();
  EXPECT_EQ(got_, "moved");
}

TEST_F(ChainTest, GetTakesAWholeVersionNewerThanTheOldOne) {
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  Write(kMiddle, 3, kOriginal, "middle", 0);
  WriteNewest(kMiddle);
  Get();
  Serve(kMiddle);
  ASSERT_EQ(fabric_->posted.size(), 2U) << "version and old header are posted together";
  EXPECT_FALSE(Reads(fabric_->posted[0], kMoved));
  EXPECT_TRUE(Reads(fabric_->posted[1], kMoved));
  EXPECT_EQ(fabric_->posted[1].local.size(), kOldHeaderBytes);
  Serve();
  EXPECT_EQ(got_, "middle");
}

TEST_F(ChainTest, GetReadsTheOldHeaderWithEachReadOfALargeVersion) {
  const std::string large(500, 'm');
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  Write(kMiddle, 3, kOriginal, large, 0);
  WriteNewest(kMiddle);
  Get();
  Serve();
  EXPECT_EQ(got_, large);
  EXPECT_EQ(old_headers_, 2U) << "with each Read of the version";
  Write(kMiddle, 2, kOriginal, large, 0);
  Get();
  Serve();
  EXPECT_EQ(got_, "old");
}

class UnverifiedOldHeaderTest : public ChainTest, public testing::WithParamInterface<std::tuple<bool, bool, bool>> {};

// Regression: such a get reported damage at once. But the version that it must pass may be newer than the old one, and
// its put acknowledged. The entry tells when the newest version is settled, or taken back.
TEST_P(UnverifiedOldHeaderTest, GetThatMustPassAnotherVersionWaitsForTheNewest) {
  const auto [original_is_damaged, of_key, newest_stays] = GetParam();
  const std::string_view other = "yek";
  ASSERT_EQ(other.size(), std::string_view(kKey).size());
  Write(kOlder, 1, format::kNoAddress, "older", 0);
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  if (original_is_damaged) *(InLog(kOriginal) + format::ValueOffset(other.size())) ^= std::byte{1};
  Write(kMoved, 2, format::kNoAddress, "moved", 0, of_key ? kKey : other);
  if (of_key) *InLog(kMoved) ^= std::byte{1};
  WriteNewest(kOriginal);
  Get();
  ServeSome();
  EXPECT_EQ(got_, "");
  Settle(newest_stays ? kNewest : kMoved);
  Serve();
  EXPECT_EQ(got_, newest_stays ? "newest" : CodeName(Code::kCorruption));
}
INSTANTIATE_TEST_SUITE_P(Chain, UnverifiedOldHeaderTest,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

// It must not take all of its time: then its connection would end, with all operations there.
TEST_F(ChainTest, GetReportsDamageIfTheNewestVersionStaysUndecided) {
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  WriteNewest(kOriginal);
  Get();
  Serve();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
}
// Regression: tombstones share a place. The entry named an earlier tombstone, over the old version. The later one is
// over a new value. The old version may be older than one that the client has seen.
TEST_F(ChainTest, GetThatFindsALaterTombstoneLooksAtTheEntryAgain) {
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  Write(kMiddle, 7, format::kNoAddress, "middle", format::ObjectHeader::kPersistedFlag);
  Write(kNewest, 9, kMiddle, "", format::ObjectHeader::kPersistedFlag, kKey, 0, format::ObjectKind::kTombstone);
  Get();
  Serve(kNewest);
  SetOld(format::kNoAddress);
  Serve();
  EXPECT_EQ(got_, CodeName(Code::kNotFound));
  EXPECT_EQ(engine_->stats().second_looks, 2U) << "the second one finds the entry as it was";
}

// The old version's value is damaged, and its header is whole. So the get knows that it has passed nothing newer.
TEST_F(ChainTest, DamagedOldVersionIsCorruptionIfNothingNewerWasPassed) {
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  Write(kOriginal, 2, format::kNoAddress, "original", format::ObjectHeader::kPersistedFlag);
  *(InLog(kMoved) + format::ValueOffset(std::string_view(kKey).size())) ^= std::byte{1};
  for (const LogAddress previous : {kMoved, kOriginal}) {
    WriteNewest(previous);
    Get();
    Serve();
    EXPECT_EQ(got_, CodeName(Code::kCorruption));
  }
}

// A client writes what it likes into its own chunk, such as a chain that leads back. A get follows it to older versions
// alone, so it ends.
TEST_F(ChainTest, GetEndsIfTheChainLeadsInACircle) {
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  for (const LogAddress previous : {kNewest, kMiddle}) {
    Write(kMiddle, 10, kNewest, "middle", format::ObjectHeader::kPersistedFlag);
    WriteNewest(previous);
    Get();
    ServeSome();
    ASSERT_TRUE(fabric_->posted.empty());
    EXPECT_EQ(got_, "moved");
  }
}

TEST_F(ChainTest, OldVersionThatVerifiesLaterIsTaken) {
  Write(kOriginal, 2, kOlder, "original", format::ObjectHeader::kPersistedFlag);
  WriteNewest(kOriginal);
  Get();
  Serve(kOriginal);
  for (int i = 0; i < 2; ++i) Answer(fabric_->Take());
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  engine_->Poll();
  Serve();
  EXPECT_EQ(got_, "moved");
  EXPECT_EQ(engine_->stats().second_looks, 0U) << "not older than the original, it is still the old one";
}

// The put of the version between the newest and the old one may be acknowledged.
TEST_F(ChainTest, UnverifiedOldHeaderDoesNotMatterIfTheGetNeedNotPassTheVersion) {
  Write(kMiddle, 3, kOriginal, "middle", 0);
  WriteNewest(kMiddle);
  for (const std::string_view key : {"key", "yek", "another key"}) {
    Write(kMoved, 5, format::kNoAddress, "old", 0, key);
    if (key == kKey) *InLog(kMoved) ^= std::byte{1};
    Get();
    Serve();
    EXPECT_EQ(got_, "middle") << key;
  }
}

TEST_F(ChainTest, GetReadsTheSlotsAgainIfNoneHasTheOldVersion) {
  Write(kOriginal, 2, format::kNoAddress, "original", 0);
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  WriteNewest(kOriginal);
  slots_[1] = {};
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Serve();
  slots_[1] = format::HeadSlot::Of(0, 1);
  Get();
  Serve();
  EXPECT_EQ(got_, "moved");
}

// The old version was moved away and back to the same address of its slot, in another region. The get knew the slots
// from the time between the two moves. They were enough for the newest version, which is damaged.
TEST_F(ChainTest, OldVersionThatCameBackToItsAddressIsNotDamage) {
  WriteNewest(format::kNoAddress);
  *InLog(kNewest) ^= std::byte{1};
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  slots_[1] = format::HeadSlot::Of(0, 7).Emptied();
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Serve();
  Get();
  // Serves the get until it reads the slots again, after the newest version. So far nothing has changed.
  while (!fabric_->posted.empty() && fabric_->posted.front().remote.region != format::kControlRegion) {
    Answer(fabric_->Take());
    engine_->Poll();
  }
  ASSERT_FALSE(fabric_->posted.empty());
  Answer(fabric_->Take());
  slots_[1] = format::HeadSlot::Of(0, 1);
  engine_->Poll();
  Serve();
  EXPECT_EQ(got_, "moved");
}

TEST_F(ChainTest, GetReadsNoHeaderBeyondTheEndOfItsSegment) {
  WriteNewest(kOriginal);
  const auto at_end = LogAddress::At(0, geometry_.segment_size - format::kGranuleBytes);
  SetOld(at_end);
  log_.resize(geometry_.segment_size);
  Get();
  ServeSome();
  Settle(at_end);
  Serve();
  EXPECT_EQ(got_, CodeName(Code::kCorruption));
  EXPECT_EQ(old_headers_, 0U);
}

TEST_F(ChainTest, OldHeaderBelongsToTheSlotThatWasKnownWhenItWasRequested) {
  Write(kOriginal, 2, format::kNoAddress, "original", 0);
  Write(kMoved, 2, format::kNoAddress, "moved", 0);
  WriteNewest(kOriginal);
  Get();
  Serve(kOriginal);
  const WorkRequest reads[] = {fabric_->Take(), fabric_->Take()};
  slots_[1] = format::HeadSlot::Of(0, 2);
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  Serve();
  for (const WorkRequest& read : reads) Answer(read);
  engine_->Poll();
  EXPECT_EQ(got_, "") << "it was compared, and is not newer";
  ASSERT_FALSE(fabric_->posted.empty());
  EXPECT_EQ(fabric_->posted.front().remote.offset,
            geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))))
      << "the entry: slots have changed";
}

TEST_F(ChainTest, GetReadsNoOldHeaderIfItHasNothingToCompare) {
  Write(kMoved, 2, format::kNoAddress, "old", 0);
  WriteNewest(kMoved);
  Get();
  Serve();
  EXPECT_EQ(got_, "old");
  SetOld(format::kNoAddress);
  Write(kMiddle, 3, format::kNoAddress, "middle", 0);
  WriteNewest(kMiddle);
  Get();
  Serve();
  EXPECT_EQ(got_, "middle");
  EXPECT_EQ(old_headers_, 0U);
}

}  // namespace
}  // namespace erda::client
