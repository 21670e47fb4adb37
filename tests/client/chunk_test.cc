// Chunks for delegated puts: the chunks that a client takes from the server, and the puts that it writes there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "client/engine_fixture.h"
#include "format/control_block.h"
#include "format/hello.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::client {
namespace {

class ChunkTest : public EngineTest {
 protected:
  [[nodiscard]] PutPath path() const override { return PutPath::kDelegate; }
  // The first put asks for a chunk, and goes inline.
  void SetUp() override {
    EngineTest::SetUp();
    Put(100);
    asks_ = TakeRequest(RequestOp::kDelegate);
    GoesWithout();
    engine_->Poll();
    ASSERT_EQ(end_, CodeName(Code::kOk));
  }
  virtual void GoesWithout() { Answer(TakeRequest(RequestOp::kPutInline), {}); }
  // Returns an answer with a chunk of `bytes` bytes.
  [[nodiscard]] Reply Chunk(uint64_t bytes) const { return ChunkFor(asks_, bytes); }
  [[nodiscard]] uint64_t Least() const { return LoadAs<Request>(asks_.local).version; }
  [[nodiscard]] uint64_t Most() const { return LoadAs<Request>(asks_.local).value_size; }
  // Gives the answer. Returns true if the client keeps the connection.
  bool Takes(const Reply& reply) {
    Answer(asks_, reply);
    engine_->Poll();
    return fabric_->channel() != nullptr;
  }

  WorkRequest asks_;
};

TEST_F(ChunkTest, PutWritesIntoTheChunkBeforeItSendsItsRequest) {
  ASSERT_TRUE(Takes(Chunk(Least())));
  Put(100);
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.remote.region, format::kPoolWriteRegion);
  const uint64_t object = geometry_.RegionOffset(0) + 4096 + format::kChunkObjectsAt;
  EXPECT_EQ(write.remote.offset, object + format::ValueOffset(std::string_view(kKey).size()));
  EXPECT_EQ(write.local.size(), 100U);
  const auto request = LoadAs<Request>(TakeRequest(RequestOp::kPutDelegated).local);
  EXPECT_EQ(request.address, LogAddress::At(0, 4096 + format::kChunkObjectsAt).raw());
  EXPECT_EQ(request.value_crc, Crc32c(0, write.local));
}

TEST_F(ChunkTest, RefusedPutFromABufferEndsAfterBothItsRequestsAreSent) {
  ASSERT_TRUE(Takes(Chunk(Least())));
  auto buffer = engine_->MakeBuffer(100);
  ASSERT_TRUE(buffer.ok());
  end_ = "";
  ASSERT_TRUE(engine_->Put(kKey, *buffer, 60, [this](const Status& status) { End(status); }).ok());
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.local.data(), (*buffer)->value.data());
  const WorkRequest delegated = TakeRequest(RequestOp::kPutDelegated);
  Reply refused{};
  refused.code = static_cast<uint8_t>(Code::kResourceExhausted);
  refused.reason = static_cast<uint8_t>(format::Reason::kNoChunk);
  Answer(delegated, refused);
  engine_->Poll();
  std::optional<WorkRequest> inline_put;
  while (!fabric_->posted.empty()) {
    const WorkRequest work = fabric_->Take();
    if (LoadAs<Request>(work.local).op == static_cast<uint8_t>(RequestOp::kPutInline)) inline_put = work;
  }
  ASSERT_TRUE(inline_put);
  Answer(*inline_put, {});
  engine_->Poll();
  EXPECT_EQ(end_, "");
  fabric_->Complete(delegated);
  engine_->Poll();
  EXPECT_EQ(end_, "") << "the second request is not sent";
  fabric_->Complete(*inline_put);
  engine_->Poll();
  EXPECT_EQ(end_, CodeName(Code::kOk));
}

TEST_F(ChunkTest, ChunkThatIsTooSmallEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(Least() - 16))); }

TEST_F(ChunkTest, ChunkLargerThanRequestedEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(Most() + 16))); }

TEST_F(ChunkTest, ChunkOfAnotherHeadEndsTheConnection) {
  Reply reply = Chunk(Least());
  ++reply.head;
  EXPECT_FALSE(Takes(reply));
}

TEST_F(ChunkTest, ObjectThatIsNoChunkEndsTheConnection) {
  Reply reply = Chunk(Least());
  reply.header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
  EXPECT_FALSE(Takes(reply));
}

TEST_F(ChunkTest, ChunkWithAnUnrequestedWindowEndsTheConnection) {
  Reply reply = Chunk(Least());
  reply.number = 5;
  EXPECT_FALSE(Takes(reply));
}

TEST_F(ChunkTest, ReplyToAnotherRequestEndsTheConnection) {
  Reply reply = Chunk(Least());
  reply.id = LoadAs<Request>(asks_.local).id + 1;
  std::memcpy(fabric_->offered().data() + asks_.imm * sizeof(Reply), &reply, sizeof(reply));
  fabric_->ReceiveImm(asks_.imm);
  engine_->Poll();
  EXPECT_EQ(fabric_->channel(), nullptr);
}

TEST_F(ChunkTest, ChunkInARegionThatIsUnknownYetIsNotUsed) {
  Reply reply = Chunk(Least());
  reply.generation = 2;
  ASSERT_TRUE(Takes(reply));
  Put(100);
  EXPECT_EQ(fabric_->Take().remote.region, format::kControlRegion) << "it asks";
  TakeRequest(RequestOp::kPutInline);
}

// The client writes into its chunk through a window. The key of the window comes with the chunk.
class WindowedChunkTest : public ChunkTest {
 protected:
  [[nodiscard]] format::Placing placing() const override { return format::Placing::kWindow; }
  void GoesWithout() override {
    EXPECT_EQ(fabric_->Take().kind, OpKind::kWrite);  // Into its staging buffer.
    Answer(TakeRequest(RequestOp::kPutStaged), {});
  }
  Reply Chunk(uint64_t key) {
    Reply reply = ChunkTest::Chunk(Least());
    reply.number = key;
    return reply;
  }
};

TEST_F(WindowedChunkTest, PutUsesTheWindowKeyThatCameWithTheChunk) {
  ASSERT_TRUE(Takes(Chunk(UINT32_MAX)));
  Put(100);
  const WorkRequest write = fabric_->Take();
  EXPECT_EQ(write.kind, OpKind::kWrite);
  EXPECT_EQ(write.remote.window, UINT32_MAX);
  TakeRequest(RequestOp::kPutDelegated);
}

TEST_F(WindowedChunkTest, ChunkWithoutAWindowKeyEndsTheConnection) { EXPECT_FALSE(Takes(Chunk(0))); }

TEST_F(WindowedChunkTest, ChunkWithAnInvalidWindowKeyEndsTheConnection) {
  EXPECT_FALSE(Takes(Chunk(uint64_t{1} << 32)));
}

class ExpiryChunkTest : public ChunkTest {};

TEST_F(ExpiryChunkTest, DelegatedPutLeavesRoomForTheDeadlineBeforeItsValue) {
  ASSERT_TRUE(Takes(Chunk(Most())));
  const uint64_t label = format::LabelSize(std::string_view(kKey).size(), true);
  uint64_t object = 4096 + format::kChunkObjectsAt;
  for (int i = 0; i < 2; ++i) {
    const Status started = engine_->Put(kKey, std::string(100, 'v'), PutOptions{{}, std::chrono::milliseconds(7)},
                                        [this](const Result<uint64_t>& version) { End(version.status()); });
    ASSERT_TRUE(started.ok());
    const WorkRequest write = fabric_->Take();
    EXPECT_EQ(write.kind, OpKind::kWrite);
    EXPECT_EQ(write.remote.offset, geometry_.RegionOffset(0) + object + format::ValueOffset(label));
    const WorkRequest put = TakeRequest(RequestOp::kPutDelegated);
    const auto request = LoadAs<Request>(put.local);
    EXPECT_EQ(request.ttl, 7U);
    EXPECT_EQ(request.address, LogAddress::At(0, object).raw());
    EXPECT_EQ(request.value_crc, Crc32c(0, write.local));
    Answer(put, {});
    engine_->Poll();
    EXPECT_EQ(end_, CodeName(Code::kOk));
    object += format::ObjectSpace(label, 100);
  }
}

}  // namespace
}  // namespace erda::client
