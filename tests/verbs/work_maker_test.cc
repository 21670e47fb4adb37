// The work requests that follow from requests of the fabric.
#include "fabric/verbs/work_maker.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "verbs/fake_rdma.h"

namespace erda::fabric::verbs {
namespace {

constexpr uint32_t kInline = 16;

class WorkMakerTest : public testing::Test {
 protected:
  WorkMakerTest() {
    const std::vector<OfferedRegion> regions = {{0x10000, 4096, 11, static_cast<uint32_t>(Access::kRemoteReadWrite)}};
    peer_.Learn(MakeGreeting(regions, {}, 0x5000, 33));
  }
  // Returns a request for bytes of this end, with the local key 7.
  Request RequestOf(OpKind kind, size_t bytes, Purpose purpose = Purpose::kCaller) {
    Request request;
    request.work.kind = kind;
    request.work.local = std::span(memory_).first(bytes);
    request.work.remote = {0, 8, 0};
    request.local_key = 7;
    request.purpose = purpose;
    return request;
  }
  const ibv_send_wr& Make(const Request& request) {
    MakeWork(request, peer_, windows_, kInline, &work_, &piece_);
    return work_;
  }

  FakeRdma rdma_;
  std::array<std::byte, 100> memory_{};
  PeerOffer peer_;
  Windows windows_;
  ibv_send_wr work_{};
  ibv_sge piece_{};
};

TEST_F(WorkMakerTest, KindDecidesTheOperation) {
  EXPECT_EQ(Make(RequestOf(OpKind::kRead, 8)).opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(Make(RequestOf(OpKind::kWrite, 8)).opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(Make(RequestOf(OpKind::kWriteImm, 8)).opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(Make(RequestOf(OpKind::kSend, 8)).opcode, IBV_WR_SEND);
}

TEST_F(WorkMakerTest, LocalBytesAreOnePiece) {
  const ibv_send_wr& work = Make(RequestOf(OpKind::kWrite, 50));
  ASSERT_EQ(work.num_sge, 1);
  EXPECT_EQ(work.sg_list, &piece_);
  EXPECT_EQ(piece_.addr, reinterpret_cast<uint64_t>(memory_.data()));
  EXPECT_EQ(piece_.length, 50U);
  EXPECT_EQ(piece_.lkey, 7U);
}

TEST_F(WorkMakerTest, WorkWithoutLocalBytesHasNoPiece) {
  const ibv_send_wr& work = Make(RequestOf(OpKind::kWriteImm, 0));
  EXPECT_EQ(work.num_sge, 0);
  EXPECT_EQ(work.sg_list, nullptr);
  EXPECT_EQ(work.send_flags, 0U);
}

TEST_F(WorkMakerTest, FewBytesAreSentInline) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kWriteImm, OpKind::kSend}) {
    EXPECT_EQ(Make(RequestOf(kind, kInline)).send_flags, unsigned{IBV_SEND_INLINE});
    EXPECT_EQ(Make(RequestOf(kind, kInline + 1)).send_flags, 0U);
  }
  EXPECT_EQ(Make(RequestOf(OpKind::kRead, 1)).send_flags, 0U) << "the bytes of a Read come from the peer";
}

TEST_F(WorkMakerTest, PlaceIsInThePeersRegion) {
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite, OpKind::kWriteImm}) {
    const ibv_send_wr& work = Make(RequestOf(kind, 8));
    EXPECT_EQ(work.wr.rdma.remote_addr, 0x10008U);
    EXPECT_EQ(work.wr.rdma.rkey, 11U);
  }
}

TEST_F(WorkMakerTest, ImmediateTravelsInNetworkOrder) {
  Request request = RequestOf(OpKind::kWriteImm, 8);
  request.work.imm = 0x01020304;
  EXPECT_EQ(Make(request).imm_data, htonl(0x01020304));
}

TEST_F(WorkMakerTest, WorkKeepsNothingOfTheOneBefore) {
  Make(RequestOf(OpKind::kWrite, 8));
  const ibv_send_wr& work = Make(RequestOf(OpKind::kSend, 0));
  EXPECT_EQ(work.wr.rdma.remote_addr, 0U);
  EXPECT_EQ(work.wr.rdma.rkey, 0U);
  EXPECT_EQ(work.num_sge, 0);
  EXPECT_EQ(work.send_flags, 0U);
}

TEST_F(WorkMakerTest, CountsTravelBetweenTheCreditPages) {
  const ibv_send_wr& ask = Make(RequestOf(OpKind::kRead, 8, Purpose::kAskCredit));
  EXPECT_EQ(ask.opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(ask.wr.rdma.remote_addr, peer_.consumed().address);
  EXPECT_EQ(ask.wr.rdma.rkey, 33U);
  const ibv_send_wr& tell = Make(RequestOf(OpKind::kWrite, 8, Purpose::kTellCredit));
  EXPECT_EQ(tell.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(tell.wr.rdma.remote_addr, peer_.told().address);
  EXPECT_EQ(tell.wr.rdma.rkey, 33U);
}

TEST_F(WorkMakerTest, OpeningBindsTheWindow) {
  ibv_mr region{};
  const auto key = windows_.Allocate(rdma_.domain(), memory_, &region, nullptr);
  ASSERT_TRUE(key.ok());
  Request request = RequestOf(OpKind::kWrite, 0, Purpose::kOpenWindow);
  request.window = *key;
  const ibv_send_wr& work = Make(request);
  EXPECT_EQ(work.opcode, IBV_WR_BIND_MW);
  EXPECT_EQ(work.bind_mw.mw, windows_.Find(*key)->window);
  EXPECT_EQ(work.bind_mw.rkey, *key);
  EXPECT_EQ(work.bind_mw.bind_info.mr, &region);
  EXPECT_EQ(work.bind_mw.bind_info.length, memory_.size());
}

TEST_F(WorkMakerTest, ClosingInvalidatesTheKey) {
  Request request = RequestOf(OpKind::kWrite, 0, Purpose::kCloseWindow);
  request.window = 99;
  const ibv_send_wr& work = Make(request);
  EXPECT_EQ(work.opcode, IBV_WR_LOCAL_INV);
  EXPECT_EQ(work.invalidate_rkey, 99U);
}

}  // namespace
}  // namespace erda::fabric::verbs
