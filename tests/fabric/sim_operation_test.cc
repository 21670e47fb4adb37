// An operation of the simulated network: when it is over, and what a cut of the wire takes from it.
#include "fabric/sim/operation.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace erda::fabric {
namespace {

class SimOperationTest : public testing::Test {
 protected:
  // Makes an operation on the local bytes, of which two pieces are not placed yet.
  SimOperation Operation(OpKind kind) {
    SimOperation operation;
    operation.request.kind = kind;
    operation.request.local = local_;
    for (const size_t offset : {size_t{0}, size_t{8}}) {
      operation.pieces[offset].offset = offset;
      operation.pieces[offset].size = 8;
    }
    return operation;
  }
  // Schedules an event that counts itself.
  SimEvents::Id Count() {
    return events_.At(Nanoseconds(10), [this] { ++happened_; });
  }
  // Runs all events. Returns the number of those that happened.
  int Happened() {
    events_.RunUntil(Nanoseconds(100));
    return happened_;
  }

  std::array<std::byte, 16> local_{};
  SimEvents events_;
  int happened_ = 0;
};

TEST_F(SimOperationTest, OperationIsOverAfterItsLastEvent) {
  SimOperation operation = Operation(OpKind::kWriteImm);
  operation.delivery = Count();
  EXPECT_FALSE(operation.is_over());
  operation.completed = true;
  EXPECT_FALSE(operation.is_over());
  operation.pieces.clear();
  EXPECT_FALSE(operation.is_over());
  operation.LoseMessage(events_);
  EXPECT_TRUE(operation.is_over());
  operation.completed = false;
  EXPECT_FALSE(operation.is_over());
}

TEST_F(SimOperationTest, DetachedWriteKeepsTheBytesOfItsPieces) {
  local_[9] = std::byte{7};
  SimOperation operation = Operation(OpKind::kWrite);
  operation.Detach();
  local_[9] = std::byte{8};
  EXPECT_EQ(operation.pieces.at(0).kept, std::vector<std::byte>(8));
  ASSERT_EQ(operation.pieces.at(8).kept.size(), 8U);
  EXPECT_EQ(operation.pieces.at(8).kept[1], std::byte{7});
}

TEST_F(SimOperationTest, DetachedReadKeepsNothing) {
  SimOperation operation = Operation(OpKind::kRead);
  operation.Detach();
  EXPECT_TRUE(operation.pieces.at(0).kept.empty());
}

TEST_F(SimOperationTest, PieceSurvivesByChanceUnlessItsWriteCompleted) {
  SimOperation operation = Operation(OpKind::kWrite);
  Random random(1);
  const auto survivors = [&](bool keep_completed) {
    int count = 0;
    for (int i = 0; i < 1000; ++i) count += operation.Survives(random, keep_completed) ? 1 : 0;
    return count;
  };
  EXPECT_NEAR(survivors(true), 500, 100) << "it has not completed";
  operation.completed = true;
  EXPECT_NEAR(survivors(false), 500, 100);
  EXPECT_EQ(survivors(true), 1000);
}

TEST_F(SimOperationTest, LostMessageDoesNotArrive) {
  SimOperation operation = Operation(OpKind::kSend);
  operation.delivery = Count();
  operation.completion = Count();
  operation.LoseMessage(events_);
  EXPECT_EQ(Happened(), 1) << "only the completion";
}

TEST_F(SimOperationTest, LostPiecesTakeTheMessageWithThem) {
  SimOperation operation = Operation(OpKind::kWriteImm);
  operation.delivery = Count();
  operation.completion = Count();
  operation.LosePieces(events_, true);
  EXPECT_EQ(Happened(), 1) << "a Write may complete whose bytes are lost";
}

TEST_F(SimOperationTest, LostPiecesPreventACompletionThatPromisesThem) {
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite}) {
    for (const bool lose_completed : {true, false}) {
      SimOperation operation = Operation(kind);
      operation.completion = Count();
      operation.LosePieces(events_, lose_completed);
      happened_ = 0;
      EXPECT_EQ(Happened(), kind == OpKind::kWrite && lose_completed ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace erda::fabric
