#include "client/key_order.h"

#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <vector>

namespace erda::client {
namespace {

struct Op {
  OpIndex index = kNoOp;
  uint64_t key_hash = 0;
  std::string_view key;
  OpIndex bucket_next = kNoOp;
  OpIndex after = kNoOp;
  bool in_order = false;
  bool may_follow = false;
  bool waits = false;

  [[nodiscard]] std::string_view key_view() const { return key; }
  [[nodiscard]] bool MayFollow(const Op& before) const { return may_follow && before.may_follow; }
  [[nodiscard]] bool waits_for_turn() const { return waits; }
};

class KeyOrderTest : public testing::Test {
 protected:
  KeyOrderTest() {
    for (OpIndex i = 0; i < ops_.size(); ++i) ops_[i].index = i;
    order_.Reset(ops_.size());
  }
  // Returns true if the operation has to wait.
  bool Join(OpIndex i, std::string_view key, uint64_t hash) {
    ops_[i].key = key;
    ops_[i].key_hash = hash;
    ops_[i].waits = order_.Join(std::span(ops_), ops_[i]);
    return ops_[i].waits;
  }
  OpIndex Leave(OpIndex i) { return order_.Leave(std::span(ops_), ops_[i]); }

  std::vector<Op> ops_{6};
  KeyOrder order_;
};

TEST_F(KeyOrderTest, OperationsOnOneKeyTakeTurnsInTheirOrder) {
  EXPECT_FALSE(Join(0, "a", 1));
  EXPECT_TRUE(Join(1, "a", 1));
  EXPECT_TRUE(Join(2, "a", 1));
  EXPECT_FALSE(Join(3, "b", 2));
  EXPECT_EQ(Leave(0), 1U);
  EXPECT_EQ(Leave(3), kNoOp);
  EXPECT_EQ(Leave(1), 2U);
  EXPECT_EQ(Leave(2), kNoOp);
  EXPECT_FALSE(Join(4, "a", 1));
}

// 0, 1 and 2 are under way together. 3 waits for all of them.
TEST_F(KeyOrderTest, OperationWaitsForAllThatAreUnderWay) {
  for (OpIndex i : {0, 1, 2, 4}) ops_[i].may_follow = true;
  for (OpIndex i : {0, 1, 2}) EXPECT_FALSE(Join(i, "a", 1));
  EXPECT_TRUE(Join(3, "a", 1));
  EXPECT_TRUE(Join(4, "a", 1)) << "it may not pass one that waits";
  EXPECT_EQ(Leave(1), kNoOp);
  EXPECT_EQ(Leave(2), kNoOp);
  EXPECT_EQ(Leave(0), 3U);
  ops_[3].waits = false;
  EXPECT_EQ(Leave(3), 4U);
  ops_[4].waits = false;
  EXPECT_EQ(Leave(4), kNoOp);
}

TEST_F(KeyOrderTest, OperationThatFollowedIsNotBegunAgain) {
  for (OpIndex i : {0, 1}) ops_[i].may_follow = true;
  for (OpIndex i : {0, 1}) EXPECT_FALSE(Join(i, "a", 1));
  EXPECT_EQ(Leave(0), kNoOp);
  EXPECT_TRUE(Join(2, "a", 1));
  EXPECT_EQ(Leave(1), 2U);
}

TEST_F(KeyOrderTest, TwoKeysWithOneHashDoNotWaitForEachOther) {
  EXPECT_FALSE(Join(0, "a", 1));
  EXPECT_FALSE(Join(1, "b", 1));
  EXPECT_TRUE(Join(2, "a", 1));
  EXPECT_TRUE(Join(3, "b", 1));
  EXPECT_EQ(Leave(1), 3U);
  EXPECT_EQ(Leave(0), 2U);
}

TEST_F(KeyOrderTest, OrderStaysWhenTheHashesChange) {
  EXPECT_FALSE(Join(0, "a", 1));
  EXPECT_FALSE(Join(1, "b", 1));
  EXPECT_TRUE(Join(2, "a", 1));
  EXPECT_FALSE(Join(3, "c", 3));
  EXPECT_EQ(Leave(3), kNoOp);
  for (Op& op : ops_) op.key_hash = op.key == "a" ? 5 : 6;
  order_.Rehash(std::span(ops_));
  EXPECT_TRUE(Join(4, "a", 5));
  EXPECT_FALSE(Join(3, "c", 6)) << "it had left";
  EXPECT_EQ(Leave(0), 2U);
  EXPECT_EQ(Leave(1), kNoOp);
  EXPECT_EQ(Leave(2), 4U);
  EXPECT_EQ(Leave(4), kNoOp);
  EXPECT_EQ(Leave(3), kNoOp);
}

}  // namespace
}  // namespace erda::client
