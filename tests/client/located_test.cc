// Known locations (I12): a get reads the version alone if the client knows its place.
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "base/test_hash.h"
#include "client/located_fixture.h"
#include "format/index_entry.h"
#include "format/object.h"
#include "tests/format/first_blocks.h"

namespace erda::client {
namespace {

TEST_F(LocatedTest, SecondGetReadsOnlyTheVersion) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadsOfGet(), "v");
    EXPECT_EQ(got_, "value");
  }
  EXPECT_EQ(engine_->stats().cache_hits, 3U);
  EXPECT_EQ(engine_->stats().cache_misled, 0U);
}

TEST_F(LocatedTest, VersionThatItsEntryHasLeftIsNotReturned) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Write(kOther, 2, kPlace, "newer", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  SetLeft(kPlace);
  Name(kOther);
  EXPECT_EQ(ReadsOfGet(), "vev") << "one round trip more, and no more than one";
  EXPECT_EQ(got_, "newer");
  EXPECT_EQ(engine_->stats().cache_misled, 1U);
  // The flag says nothing to who comes by way of the entry, which may have been taken back.
  Name(kPlace);
  SetLeft(kOther);
  ReadsOfGet();
  EXPECT_EQ(got_, "value");
  // And it is not looked for again where it will not count.
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ReadsOfGet(), "ev");
    EXPECT_EQ(got_, "value");
  }
}

TEST_F(LocatedTest, ClientKnowsThePlaceOfItsReservedPut) {
  Put(kLargeValue);
  const WorkRequest reserve = TakeReserve();
  fabric_->Complete(reserve);
  Reserve(reserve, kLargeValue);
  engine_->Poll();
  EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);
  const WorkRequest commit = TakeRequest(RequestOp::kCommit);
  fabric_->Complete(commit);
  EngineTest::Answer(commit, {});
  engine_->Poll();
  ASSERT_EQ(end_, CodeName(Code::kOk));
  Get();
  const WorkRequest read = fabric_->Take();
  EXPECT_EQ(read.remote.offset, geometry_.RegionOffset(0) + 4096) << "the version";
  EXPECT_EQ(read.local.size(), format::ObjectSpace(std::string_view(kKey).size(), kLargeValue));
}

TEST_F(LocatedTest, BytesThatDoNotVerifyAtAKnownPlaceDoNotCount) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Write(kOther, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  std::memset(InLog(kPlace), 0, 64);
  Name(kOther);
  EXPECT_EQ(ReadsOfGet(), "vev");
  EXPECT_EQ(got_, "value");
}

TEST_F(LocatedTest, PlaceOfAnUnsettledVersionIsNotRemembered) {
  Write(kPlace, 1, format::kNoAddress, "placed", 0);
  entry_ = format::EntryWord().Published(kPlace);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadsOfGet(), "ev");
    EXPECT_EQ(got_, "placed");
  }
}

TEST_F(LocatedTest, KnownPlaceInAReusedRegionIsNotRead) {
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "ev");
  ASSERT_TRUE(engine_->connections().BeginReadControls().ok());
  TellSlots(2);
  engine_->Poll();
  Get();
  ASSERT_FALSE(fabric_->posted.empty());
  EXPECT_EQ(fabric_->Take().remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))))
      << "the entry";
}

TEST_F(LocatedTest, ClientKnowsThePlaceOfItsInlinePutUntilItsDelete) {
  ASSERT_TRUE(engine_->Put(kKey, "value", [](const Status&) {}).ok());
  const WorkRequest put = TakeRequest(RequestOp::kPutInline);
  Write(kPlace, 1, format::kNoAddress, "value", 0);
  Reply reply{};
  reply.address = kPlace.raw();
  reply.generation = 1;
  EngineTest::Answer(put, reply);
  engine_->Poll();
  Name(kPlace);
  EXPECT_EQ(ReadsOfGet(), "v");
  EXPECT_EQ(got_, "value");
  ASSERT_TRUE(engine_->Delete(kKey, [](const Status&) {}).ok());
  EngineTest::Answer(TakeRequest(RequestOp::kDelete), {});
  engine_->Poll();
  Get();
  EXPECT_EQ(fabric_->Take().remote.offset, geometry_.FirstSlotOffset(0, format::FirstHome(geometry_, HashKey(kKey))))
      << "the entry";
}

}  // namespace
}  // namespace erda::client
