#include "server/requests/request_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "erda/client.h"

namespace erda::server {
namespace {

using format::Condition;
using format::Request;
using format::RequestOp;

class NoRegion : public fabric::Region {
 public:
  [[nodiscard]] std::span<std::byte> bytes() const override { return {}; }
  [[nodiscard]] fabric::Access access() const override { return fabric::Access::kRemoteReadWindows; }
};

enum class Rights { kWholePool, kWindows, kStaging };
constexpr Rights kAllRights[] = {Rights::kWholePool, Rights::kWindows, Rights::kStaging};

class RequestRules : public testing::Test {
 protected:
  void Grant(Session* session, Rights rights) const {
    session->writable = rights == Rights::kWholePool;
    if (rights == Rights::kWindows) session->windowed_pool = &region_;
  }
  static Request RequestFor(RequestOp op) {
    Request request{};
    request.op = static_cast<uint8_t>(op);
    request.key_size = 3;
    request.value_size = op == RequestOp::kIncrement ? 8 : 100;
    return request;
  }
  std::string Numbers(const Request& request, size_t slot_bytes = 16384) const {
    const Violation violation = CheckNumbers(request, slot_bytes, session_, geometry_);
    return violation ? violation.what() : "";
  }

  NoRegion region_;
  Session session_;
  const format::Geometry geometry_ = *format::ChooseGeometry({4 << 20, 1, 64 << 10, 16 << 10, 0});
};

constexpr RequestOp kAllOps[] = {RequestOp::kPutInline, RequestOp::kReserve,      RequestOp::kCommit,
                                 RequestOp::kDelete,    RequestOp::kReport,       RequestOp::kClean,
                                 RequestOp::kDelegate,  RequestOp::kPutDelegated, RequestOp::kGiveBack,
                                 RequestOp::kIncrement, RequestOp::kPutStaged};

TEST_F(RequestRules, OnlyPlacedPutsAndSpaceMayBeUndone) {
  for (const RequestOp op : kAllOps) {
    for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
      Request request = RequestFor(op);
      request.ack = static_cast<uint8_t>(ack);
      const bool chunk = op == RequestOp::kDelegate || op == RequestOp::kGiveBack;
      const bool put = op == RequestOp::kPutInline || op == RequestOp::kPutStaged || op == RequestOp::kPutDelegated;
      const bool placed = ack == Ack::kPlaced && (put || op == RequestOp::kReserve);
      const Undone ok = placed ? Undone::kPlaced : chunk || op == RequestOp::kReserve ? Undone::kMayBe : Undone::kNever;
      EXPECT_EQ(UndoneOf(request, Code::kOk), ok) << static_cast<int>(op);
      const Undone refused = chunk || op == RequestOp::kReserve ? Undone::kMayBe : Undone::kNever;
      EXPECT_EQ(UndoneOf(request, Code::kResourceExhausted), refused) << static_cast<int>(op);
      if (chunk) continue;
      EXPECT_EQ(UndoneOf(request, Code::kConflict), Undone::kNever) << static_cast<int>(op);
    }
  }
}

TEST_F(RequestRules, WriteAccessDecidesWhichPlacesARequestMayName) {
  for (const Rights rights : kAllRights) {
    Session session;
    Grant(&session, rights);
    for (const RequestOp op : kAllOps) {
      const bool anywhere = op == RequestOp::kReserve || op == RequestOp::kCommit;
      const bool in_chunk = op == RequestOp::kDelegate || op == RequestOp::kPutDelegated || op == RequestOp::kGiveBack;
      const bool allowed = rights == Rights::kWholePool || (!anywhere && (!in_chunk || rights == Rights::kWindows));
      EXPECT_EQ(!CheckRights(RequestFor(op), session), allowed)
          << "op " << static_cast<int>(op) << ", rights " << static_cast<int>(rights);
    }
  }
}

TEST_F(RequestRules, OnlyInlineAndStagedPutsReservesAndDeletesHaveConditions) {
  Grant(&session_, Rights::kWholePool);
  for (const RequestOp op : kAllOps) {
    const bool may = op == RequestOp::kPutInline || op == RequestOp::kPutStaged || op == RequestOp::kReserve ||
                     op == RequestOp::kDelete;
    Request request = RequestFor(op);
    request.condition = static_cast<uint8_t>(Condition::kVersion);
    EXPECT_EQ(!CheckRights(request, session_), may) << static_cast<int>(op);
    request.condition = static_cast<uint8_t>(Condition::kVersion) + 1;
    EXPECT_TRUE(CheckRights(request, session_)) << "there is no such condition";
  }
}

TEST_F(RequestRules, ADelegatedPutDoesNotWaitForRoom) {
  for (const RequestOp op : kAllOps) {
    const bool never = op == RequestOp::kPutDelegated || op == RequestOp::kDelegate || op == RequestOp::kGiveBack ||
                       op == RequestOp::kCommit || op == RequestOp::kReport;
    EXPECT_EQ(MayWait(RequestFor(op)), !never) << static_cast<int>(op);
  }
}

TEST_F(RequestRules, KeyAndAckHaveLimits) {
  Request request = RequestFor(RequestOp::kDelete);
  EXPECT_EQ(Numbers(request), "");
  request.key_size = 0;
  EXPECT_EQ(Numbers(request), "a key whose size is not 1 to 1024 bytes");
  request.key_size = format::kKeyBytesMax + 1;
  EXPECT_EQ(Numbers(request), "a key whose size is not 1 to 1024 bytes");
  request.key_size = format::kKeyBytesMax;
  EXPECT_EQ(Numbers(request), "");
  request.ack = static_cast<uint8_t>(Ack::kPersisted) + 1;
  EXPECT_EQ(Numbers(request), "an unknown ack");
}

TEST_F(RequestRules, AnInlineValueFitsIntoItsSlotAndIntoASegment) {
  Request request = RequestFor(RequestOp::kPutInline);
  const uint64_t slot_bytes = format::InlineValueOffset(request.key_size) + request.value_size;
  EXPECT_EQ(Numbers(request, slot_bytes), "");
  EXPECT_EQ(Numbers(request, slot_bytes - 1), "a value that does not fit");
  request.value_size = static_cast<uint32_t>(format::ValueBytesMax(geometry_, request.key_size));
  EXPECT_EQ(Numbers(request, 1 << 20), "");
  ++request.value_size;
  EXPECT_EQ(Numbers(request, 1 << 20), "a value that does not fit");
  request.value_size = UINT32_MAX;
  EXPECT_EQ(Numbers(request, 1 << 20), "a value that does not fit");
}

TEST_F(RequestRules, AReservedOrDelegatedValueFitsIntoASegment) {
  for (const RequestOp op : {RequestOp::kReserve, RequestOp::kPutDelegated}) {
    Request request = RequestFor(op);
    request.value_size = static_cast<uint32_t>(format::ValueBytesMax(geometry_, request.key_size));
    EXPECT_EQ(Numbers(request, 200), "") << "whatever the size of a slot";
    request.ttl = 1;
    EXPECT_EQ(Numbers(request, 200), "a value that does not fit") << "a deadline takes space";
  }
}

TEST_F(RequestRules, AnIncrementHasEightBytes) {
  Request request = RequestFor(RequestOp::kIncrement);
  EXPECT_EQ(Numbers(request), "");
  request.value_size = 7;
  EXPECT_EQ(Numbers(request), "an increment whose operand has not 8 bytes, or does not fit into its request slot");
}

TEST_F(RequestRules, AStagedValueLiesInItsStagingBuffer) {
  Request request = RequestFor(RequestOp::kPutStaged);
  EXPECT_EQ(Numbers(request), "a value outside of its staging buffer") << "the session has no such buffer";
  session_.staging = *SharedMemory::Create("test", 4096);
  request.address = 3996;
  EXPECT_EQ(Numbers(request), "");
  for (const uint32_t address : {3997U, 4096U, UINT32_MAX}) {
    request.address = address;
    EXPECT_EQ(Numbers(request), "a value outside of its staging buffer") << address;
  }
}

TEST_F(RequestRules, OperationsWithoutAKeyAreNotTakenForOnesWithAKey) {
  for (const RequestOp op :
       {RequestOp::kCommit, RequestOp::kDelegate, RequestOp::kGiveBack, RequestOp{0}, RequestOp{12}, RequestOp{255}}) {
    EXPECT_EQ(Numbers(RequestFor(op)), "an unknown operation") << static_cast<int>(op);
  }
}

}  // namespace
}  // namespace erda::server
