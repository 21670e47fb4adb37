// The memory that a peer offers, and where operations go in it.
#include "fabric/verbs/peer_offer.h"

#include <gtest/gtest.h>

#include <vector>

namespace erda::fabric::verbs {
namespace {

class PeerOfferTest : public testing::Test {
 protected:
  PeerOfferTest() {
    const std::vector<OfferedRegion> regions = {{0x10000, 4096, 11, static_cast<uint32_t>(Access::kRemoteRead)},
                                                {0x90000, 100, 22, static_cast<uint32_t>(Access::kRemoteReadWrite)}};
    offer_.Learn(MakeGreeting(regions, {}, 0x5000, 33));
  }
  PeerOffer offer_;
};

TEST_F(PeerOfferTest, RegionsAreThoseOfTheGreeting) {
  ASSERT_EQ(offer_.regions().size(), 2U);
  EXPECT_EQ(offer_.regions()[0].size, 4096U);
  EXPECT_EQ(offer_.regions()[0].access, Access::kRemoteRead);
  EXPECT_EQ(offer_.regions()[1].size, 100U);
  EXPECT_EQ(offer_.regions()[1].access, Access::kRemoteReadWrite);
  EXPECT_TRUE(PeerOffer().regions().empty());
}

TEST_F(PeerOfferTest, PlaceIsInsideTheRegion) {
  const PeerPlace first = offer_.Find({0, 7, 0});
  EXPECT_EQ(first.address, 0x10007U);
  EXPECT_EQ(first.key, 11U);
  const PeerPlace second = offer_.Find({1, 0, 0});
  EXPECT_EQ(second.address, 0x90000U);
  EXPECT_EQ(second.key, 22U);
}

TEST_F(PeerOfferTest, WindowsKeyReplacesTheRegionsKey) {
  const PeerPlace place = offer_.Find({0, 7, 44});
  EXPECT_EQ(place.address, 0x10007U);
  EXPECT_EQ(place.key, 44U);
}

TEST_F(PeerOfferTest, UnknownRegionHasAKeyThatOpensNothing) {
  for (const uint32_t region : {2U, 3U, UINT32_MAX}) {
    EXPECT_EQ(offer_.Find({region, 0, 0}).key, 0U) << region;
    EXPECT_EQ(offer_.Find({region, 0, 44}).key, 0U) << region;
  }
  EXPECT_EQ(PeerOffer().Find({}).key, 0U);
}

TEST_F(PeerOfferTest, CountsAreInTheCreditPage) {
  EXPECT_EQ(offer_.consumed().address, 0x5000 + offsetof(CreditPage, consumed));
  EXPECT_EQ(offer_.told().address, 0x5000 + offsetof(CreditPage, told));
  EXPECT_EQ(offer_.consumed().key, 33U);
  EXPECT_EQ(offer_.told().key, 33U);
}

}  // namespace
}  // namespace erda::fabric::verbs
