// The channels of a queue, by their numbers and by their queue pairs.
#include "fabric/verbs/channel_table.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace erda::fabric::verbs {
namespace {

class ChannelTableTest : public testing::Test {
 protected:
  // Returns a channel that nobody looks into.
  VerbsChannel* At(size_t i) { return reinterpret_cast<VerbsChannel*>(&places_[i]); }
  void Add(size_t i) { table_.Add(At(i), {static_cast<uint32_t>(10 * i), 1, 2}); }

  std::array<std::max_align_t, 4> places_{};
  ChannelTable table_;
};

TEST_F(ChannelTableTest, NumbersBeginWithOne) {
  EXPECT_TRUE(table_.unused());
  Add(0);
  Add(1);
  EXPECT_FALSE(table_.unused());
  EXPECT_EQ(table_.NumberOf(At(0)), 1U);
  EXPECT_EQ(table_.NumberOf(At(1)), 2U);
  EXPECT_EQ(table_.Find(1), At(0));
  EXPECT_EQ(table_.Find(2), At(1));
}

TEST_F(ChannelTableTest, UnknownChannelHasNoNumber) {
  EXPECT_EQ(table_.NumberOf(At(0)), 0U);
  Add(0);
  EXPECT_EQ(table_.NumberOf(At(1)), 0U);
}

TEST_F(ChannelTableTest, FreeNumberIsUsedAgain) {
  for (const size_t i : {0U, 1U, 2U}) Add(i);
  table_.Remove(At(1));
  EXPECT_EQ(table_.Find(2), nullptr);
  EXPECT_EQ(table_.NumberOf(At(1)), 0U);
  Add(3);
  EXPECT_EQ(table_.NumberOf(At(3)), 2U);
  EXPECT_EQ(table_.NumberOf(At(2)), 3U);
}

TEST_F(ChannelTableTest, RemovedChannelReturnsItsNeeds) {
  Add(0);
  Add(2);
  const ChannelNeeds needs = table_.Remove(At(2));
  EXPECT_EQ(needs.sends, 20U);
  EXPECT_EQ(needs.own_receives, 1U);
  EXPECT_EQ(needs.shared_receives, 2U);
  EXPECT_EQ(needs.entries(), 21U) << "a shared receive needs no entry of the channel";
}

TEST_F(ChannelTableTest, QueuePairLeadsToItsChannel) {
  table_.AddPair(700, At(0));
  table_.AddPair(701, At(1));
  EXPECT_EQ(table_.FindByPair(700), At(0));
  EXPECT_EQ(table_.FindByPair(701), At(1));
  table_.RemovePair(700);
  EXPECT_EQ(table_.FindByPair(700), nullptr);
  EXPECT_EQ(table_.FindByPair(702), nullptr);
}

TEST_F(ChannelTableTest, EachChannelIsVisitedOnce) {
  for (const size_t i : {0U, 1U, 2U}) Add(i);
  table_.Remove(At(1));
  std::vector<VerbsChannel*> seen;
  table_.ForEach([&](VerbsChannel& channel) { seen.push_back(&channel); });
  EXPECT_EQ(seen, (std::vector{At(0), At(2)}));
}

}  // namespace
}  // namespace erda::fabric::verbs
