// The requests of one Post, checked against the contract.
#include "fabric/verbs/batch.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace erda::fabric::verbs {
namespace {

class BatchTest : public testing::Test {
 protected:
  BatchTest() {
    keys_.Add({memory_.data(), memory_.data() + 500, 1, true});
    keys_.Add({memory_.data() + 500, memory_.data() + 600, 2, false});
  }
  WorkRequest Work(OpKind kind, size_t at, size_t bytes) {
    WorkRequest work;
    work.kind = kind;
    work.local = std::span(memory_).subspan(at, bytes);
    return work;
  }
  void ExpectRefused(const WorkRequest& work, std::string_view why) {
    const Status status = batch_.Take(std::vector<WorkRequest>{Work(OpKind::kWrite, 0, 8), work}, copy_);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(why), std::string_view::npos) << status.ToString();
  }

  std::array<std::byte, 1000> memory_{};
  LocalKeys keys_;
  LocalKeyCopy copy_{keys_};
  Batch batch_;
};

TEST_F(BatchTest, RequestsKeepTheirOrderAndGetTheirKeys) {
  const std::vector<WorkRequest> works = {Work(OpKind::kRead, 0, 8), Work(OpKind::kWrite, 500, 8),
                                          Work(OpKind::kWriteImm, 0, 0)};
  ASSERT_TRUE(batch_.Take(works, copy_).ok());
  ASSERT_EQ(batch_.requests().size(), 3U);
  EXPECT_EQ(batch_.requests()[0].local_key, 1U);
  EXPECT_EQ(batch_.requests()[1].local_key, 2U);
  EXPECT_EQ(batch_.requests()[2].local_key, 0U) << "it has no local bytes";
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batch_.requests()[i].work.kind, works[i].kind);
    EXPECT_EQ(batch_.requests()[i].purpose, Purpose::kCaller);
  }
}

TEST_F(BatchTest, WriteImmsAndSendsAreMessages) {
  const std::vector<WorkRequest> works = {Work(OpKind::kRead, 0, 8), Work(OpKind::kWrite, 0, 8),
                                          Work(OpKind::kWriteImm, 0, 8), Work(OpKind::kSend, 0, 8)};
  ASSERT_TRUE(batch_.Take(works, copy_).ok());
  EXPECT_EQ(batch_.messages(), 2U);
  ASSERT_TRUE(batch_.Take(std::span(works).first(2), copy_).ok());
  EXPECT_EQ(batch_.messages(), 0U) << "it still counts those of the batch before";
  EXPECT_EQ(batch_.requests().size(), 2U);
}

TEST_F(BatchTest, EmptyBatchHasNoRequests) {
  ASSERT_TRUE(batch_.Take({}, copy_).ok());
  EXPECT_TRUE(batch_.requests().empty());
  EXPECT_EQ(batch_.messages(), 0U);
}

TEST_F(BatchTest, MessageHasALimit) {
  ASSERT_TRUE(batch_.Take(std::vector<WorkRequest>{Work(OpKind::kSend, 0, kSendBytesMax)}, copy_).ok());
  ExpectRefused(Work(OpKind::kSend, 0, kSendBytesMax + 1), "a message has at most 256 bytes");
  ASSERT_TRUE(batch_.Take(std::vector<WorkRequest>{Work(OpKind::kWriteImm, 0, kSendBytesMax + 1)}, copy_).ok());
}

TEST_F(BatchTest, CompletionsCannotBePosted) {
  for (const OpKind kind :
       {OpKind::kReceiveImm, OpKind::kReceive, OpKind::kConnected, OpKind::kClosed, OpKind::kWindowClosed}) {
    ExpectRefused(Work(kind, 0, 8), "this kind of operation cannot be posted");
  }
}

TEST_F(BatchTest, LocalBytesLieInARegion) {
  ExpectRefused(Work(OpKind::kWrite, 600, 8), "not in a registered region");
  ExpectRefused(Work(OpKind::kWrite, 496, 8), "not in a registered region");
  ExpectRefused(Work(OpKind::kRead, 500, 8), "not in a registered region");
}

TEST_F(BatchTest, OperationIsSmallerThanTwoGibibytes) {
  const auto huge = [&](size_t bytes) {
    WorkRequest work;
    work.kind = OpKind::kWrite;
    work.local = {memory_.data(), bytes};  // Nobody looks into it.
    return work;
  };
  ExpectRefused(huge(size_t{1} << 31), "2 GiB");
  ExpectRefused(huge((size_t{1} << 31) - 1), "not in a registered region");
}

}  // namespace
}  // namespace erda::fabric::verbs
