// The table of client/put_path.h, for every combination of its inputs. The rules here state the same in another way.
#include "client/put_path.h"

#include <gtest/gtest.h>

#include <vector>

namespace erda::client {
namespace {

using format::Placing;

constexpr PutPath kPaths[] = {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate};
constexpr Placing kPlacings[] = {Placing::kNone, Placing::kPool, Placing::kStaging, Placing::kWindow};

std::vector<PutFacts> AllFacts() {
  std::vector<PutFacts> all;
  for (const PutPath asked : kPaths) {
    for (const Placing placing : kPlacings) {
      for (int bits = 0; bits < 8; ++bits) {
        all.push_back({asked, (bits & 1) != 0, placing, (bits & 2) != 0, (bits & 4) != 0});
      }
    }
  }
  return all;
}

bool CanWriteIntoPool(Placing placing) { return placing == Placing::kPool; }
bool CanStage(Placing placing) { return placing == Placing::kStaging || placing == Placing::kWindow; }
bool HasChunks(Placing placing) { return placing == Placing::kPool || placing == Placing::kWindow; }

TEST(PutPathTest, EachPutTakesAWayThatTheServerAllows) {
  for (const PutFacts& facts : AllFacts()) {
    switch (DecidePutWay(facts)) {
      case PutWay::kInline:
        EXPECT_TRUE(facts.fits_inline);
        EXPECT_NE(facts.asked, PutPath::kReserve);
        break;
      case PutWay::kReserved:
        EXPECT_TRUE(CanWriteIntoPool(facts.placing));
        break;
      case PutWay::kDelegated:
        EXPECT_TRUE(HasChunks(facts.placing) && facts.may_have_chunk);
        break;
      case PutWay::kStaged:
        EXPECT_TRUE(CanStage(facts.placing));
        break;
      case PutWay::kTooLarge:
        EXPECT_TRUE(facts.asked == PutPath::kInline && !facts.fits_inline);
        break;
      case PutWay::kNoRight:
        EXPECT_FALSE(CanWriteIntoPool(facts.placing));
        break;
      case PutWay::kUndecided:
        ADD_FAILURE() << "every put has a way";
    }
  }
}

TEST(PutPathTest, ThePutsThatAreInlineByTwoFactsAreInlineInTheTable) {
  for (const PutFacts& facts : AllFacts()) {
    if (!IsInline(facts.asked, facts.fits_inline)) continue;
    EXPECT_EQ(DecidePutWay(facts), PutWay::kInline);
  }
  EXPECT_TRUE(IsInline(PutPath::kAuto, true));
  EXPECT_TRUE(IsInline(PutPath::kInline, true));
  EXPECT_FALSE(IsInline(PutPath::kAuto, false));
  EXPECT_FALSE(IsInline(PutPath::kDelegate, true));
}

TEST(PutPathTest, AValueThatFitsIsRefusedOnlyWhenTheCallerAsksToReserve) {
  for (const PutFacts& facts : AllFacts()) {
    const PutWay way = DecidePutWay(facts);
    if (facts.fits_inline && (way == PutWay::kTooLarge || way == PutWay::kNoRight)) {
      EXPECT_EQ(facts.asked, PutPath::kReserve);
    }
  }
}

TEST(PutPathTest, ALargeValueIsRefusedOnlyWithoutAnyPlaceForIt) {
  for (const PutFacts& facts : AllFacts()) {
    if (facts.fits_inline || facts.asked == PutPath::kInline || facts.asked == PutPath::kReserve) continue;
    EXPECT_EQ(DecidePutWay(facts) == PutWay::kNoRight, facts.placing == Placing::kNone);
  }
}

TEST(PutPathTest, AutoSendsAValueThatFitsInline) {
  for (const PutFacts& facts : AllFacts()) {
    if (facts.asked == PutPath::kAuto && facts.fits_inline) {
      EXPECT_EQ(DecidePutWay(facts), PutWay::kInline);
    }
  }
}

TEST(PutPathTest, TheFirstLargePutOfALinkTakesNoChunk) {
  for (const PutFacts& facts : AllFacts()) {
    if (facts.asked == PutPath::kAuto && facts.first_large) {
      EXPECT_NE(DecidePutWay(facts), PutWay::kDelegated);
    }
    if (facts.asked == PutPath::kAuto && !facts.first_large && !facts.fits_inline && facts.may_have_chunk &&
        HasChunks(facts.placing)) {
      EXPECT_EQ(DecidePutWay(facts), PutWay::kDelegated);
    }
  }
}

TEST(PutPathTest, RequestedPathIsTakenWhereItIsPossible) {
  for (const PutFacts& facts : AllFacts()) {
    const PutWay way = DecidePutWay(facts);
    if (facts.asked == PutPath::kDelegate && facts.may_have_chunk && HasChunks(facts.placing)) {
      EXPECT_EQ(way, PutWay::kDelegated);
    }
    if (facts.asked == PutPath::kReserve && CanWriteIntoPool(facts.placing)) {
      EXPECT_EQ(way, PutWay::kReserved);
    }
  }
}

TEST(PutPathTest, DelegatedPutWithoutAChunkTakesTheNextBestWay) {
  for (const PutFacts& facts : AllFacts()) {
    if (facts.asked != PutPath::kDelegate || (facts.may_have_chunk && HasChunks(facts.placing))) continue;
    const PutWay expected = CanStage(facts.placing)           ? PutWay::kStaged
                            : facts.fits_inline               ? PutWay::kInline
                            : CanWriteIntoPool(facts.placing) ? PutWay::kReserved
                                                              : PutWay::kNoRight;
    EXPECT_EQ(DecidePutWay(facts), expected);
  }
}

}  // namespace
}  // namespace erda::client
