// The client's end of its chunks: which chunk a put uses, when the client asks for another one, and when it gives one
// back.
#include <gtest/gtest.h>

#include <vector>

#include "client/delegated.h"

namespace erda::client {
namespace {

using format::kChunkObjectsAt;
using format::LogAddress;
using format::Request;
using format::RequestOp;

class DelegatedTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytesMax = 4096;
  static constexpr uint32_t kHead = 6;  // The second head of shard 1.
  static constexpr uint64_t kObject = 160;

  DelegatedTest() { delegated_.Reset(5, 4, kBytesMax); }

  std::vector<Request> Sent() {
    std::vector<Request> sent;
    for (; !delegated_.to_send.empty(); delegated_.to_send.pop_front()) sent.push_back(delegated_.to_send.front());
    return sent;
  }
  // Answers as the server would, with a chunk of `bytes` bytes.
  LogAddress Give(uint64_t bytes, uint32_t head = kHead) {
    format::Reply reply{};
    const auto address = LogAddress::At(3, next_);
    reply.address = address.raw();
    reply.head = head;
    reply.generation = 9;
    reply.header.kind = static_cast<uint8_t>(format::ObjectKind::kChunk);
    reply.header.value_size = static_cast<uint32_t>(format::ChunkValueBytes(bytes));
    reply.header.version = ++version_;
    delegated_.OnDelegated(head, reply);
    next_ += bytes;
    return address;
  }
  // Finds a chunk for a put. Returns the place of its object.
  std::optional<LogAddress> Put(uint32_t head = kHead, uint64_t bytes = kObject) {
    Delegated::Chunk* chunk = delegated_.Find(head, bytes);
    if (chunk == nullptr) return std::nullopt;
    return delegated_.Place(*chunk, bytes);
  }
  static bool Is(const Request& request, RequestOp op) { return request.op == static_cast<uint8_t>(op); }

  Delegated delegated_;
  uint64_t next_ = 4096;
  uint64_t version_ = 100;
};

TEST_F(DelegatedTest, PutWithoutAChunkRequestsOne) {
  EXPECT_FALSE(Put());
  const auto sent = Sent();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(Is(sent[0], RequestOp::kDelegate));
  EXPECT_EQ(sent[0].head, kHead);
  EXPECT_EQ(sent[0].version, kChunkObjectsAt + kObject);
  EXPECT_EQ(sent[0].value_size, kChunkObjectsAt + 8 * kObject);
  EXPECT_FALSE(Put());
  EXPECT_TRUE(Sent().empty()) << "asked already";
}

TEST_F(DelegatedTest, ObjectsFollowEachOtherInTheChunk) {
  (void)Put();
  const LogAddress chunk = Give(kChunkObjectsAt + 8 * kObject);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Put(), LogAddress::At(3, chunk.offset_in_slot() + kChunkObjectsAt + i * kObject));
  }
  EXPECT_FALSE(Put());
}

TEST_F(DelegatedTest, HalfUsedChunkMakesTheClientRequestOneTwiceAsLarge) {
  (void)Put();
  (void)Sent();
  (void)Give(kChunkObjectsAt + 8 * kObject);
  for (int i = 0; i < 4; ++i) (void)Put();
  EXPECT_TRUE(Sent().empty());
  (void)Put();
  (void)Put();
  const auto sent = Sent();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].value_size, 2 * (kChunkObjectsAt + 8 * kObject));
}

TEST_F(DelegatedTest, SizeThatTheServerGaveDecidesWhenTheNextChunkIsRequested) {
  (void)Put();
  (void)Sent();
  // The server gave less than the client wished. By the size that it gave, half of the chunk is not used yet.
  (void)Give(kChunkObjectsAt + kObject + 96);
  EXPECT_TRUE(Put());
  EXPECT_TRUE(Sent().empty());
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(Put());
    EXPECT_EQ(Sent().size(), 1U);
    (void)Give(kChunkObjectsAt + kObject + 96);
    const auto object = Put();
    ASSERT_TRUE(object);
    EXPECT_TRUE(Sent().empty()) << "one at a time, not as many as there may be";
    delegated_.OnAnswer(kHead, *object, false);
  }
}

TEST_F(DelegatedTest, ClientRequestsNoChunkOverTheLimit) {
  EXPECT_FALSE(Put(kHead, kBytesMax));
  EXPECT_TRUE(Sent().empty());
  EXPECT_FALSE(Put(kHead, kBytesMax - kChunkObjectsAt));
  const auto sent = Sent();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].value_size, kBytesMax);
}

// (I8) The server lets go of a chunk with the first put after it.
TEST_F(DelegatedTest, PutsNeverReturnToAnOlderChunk) {
  (void)Put();
  (void)Give(kChunkObjectsAt + kObject + 96);
  const LogAddress second = Give(kChunkObjectsAt + 8 * kObject);
  const auto first_object = Put();
  EXPECT_EQ(Put(), LogAddress::At(3, second.offset_in_slot() + kChunkObjectsAt)) << "no room in the first";
  EXPECT_EQ(Put(kHead, 64), LogAddress::At(3, second.offset_in_slot() + kChunkObjectsAt + kObject))
      << "there would be room for this";
  delegated_.OnAnswer(kHead, *first_object, false);
  (void)Sent();
  delegated_.OnRevoked(LogAddress::At(3, 4096));
  EXPECT_TRUE(Sent().empty()) << "it is the server's already";
}

TEST_F(DelegatedTest, RevokedChunkIsGivenBackAfterTheLastReplyToItsPuts) {
  (void)Put();
  const LogAddress chunk = Give(kChunkObjectsAt + 8 * kObject);
  const auto first = Put();
  const auto second = Put();
  (void)Sent();
  delegated_.OnRevoked(chunk);
  EXPECT_FALSE(Put());
  delegated_.OnAnswer(kHead, *second, true);
  EXPECT_TRUE(Sent().empty());
  delegated_.OnAnswer(kHead, *first, false);
  const auto sent = Sent();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(Is(sent[0], RequestOp::kGiveBack));
  EXPECT_EQ(sent[0].head, kHead);
  EXPECT_EQ(sent[0].address, chunk.raw());
  EXPECT_EQ(sent[0].version, 101U);
}

TEST_F(DelegatedTest, RefusedPutMakesTheClientGiveBackTheChunk) {
  (void)Put();
  const LogAddress chunk = Give(kChunkObjectsAt + 8 * kObject);
  const auto object = Put();
  (void)Sent();
  delegated_.OnAnswer(kHead, *object, true);
  const auto sent = Sent();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(Is(sent[0], RequestOp::kGiveBack));
  delegated_.OnRevoked(chunk);
  EXPECT_TRUE(Sent().empty()) << "given back already";
  EXPECT_FALSE(Put());
}

TEST_F(DelegatedTest, RefusedChunkIsRequestedAgainAfterManyPuts) {
  (void)Put();
  ASSERT_EQ(Sent().size(), 1U);
  delegated_.OnRefused(kHead);
  int puts = 0;
  do {
    EXPECT_FALSE(Put());
    ++puts;
  } while (delegated_.to_send.empty() && puts < 1000);
  EXPECT_EQ(puts, 65);
  (void)Sent();
}

// The wish had grown for a rate of puts that may not come again.
TEST_F(DelegatedTest, NextChunkAfterARevocationIsSmallAgain) {
  for (const bool used : {true, false}) {
    delegated_.Reset(kHead, 2, kBytesMax);
    (void)Put();
    LogAddress chunk;
    for (const uint64_t objects : {8, 16, 32}) {
      ASSERT_EQ(Sent().size(), 1U);
      chunk = Give(kChunkObjectsAt + objects * kObject);
      const uint64_t puts = objects < 32 ? objects : used ? 16 : 10;
      for (uint64_t i = 0; i < puts; ++i) delegated_.OnAnswer(kHead, *Put(), false);
    }
    EXPECT_TRUE(Sent().empty()) << "no more than half is used";
    delegated_.OnRevoked(chunk);
    (void)Sent();
    EXPECT_FALSE(Put());
    const auto sent = Sent();
    ASSERT_EQ(sent.size(), used ? 1U : 0U) << "a client that hardly uses a chunk asks for none in the next puts";
    if (used) {
      EXPECT_EQ(sent[0].value_size, kChunkObjectsAt + 8 * kObject);
    }
  }
}

TEST_F(DelegatedTest, EachHeadHasSeparateChunks) {
  (void)Put();
  (void)Put(kHead + 1);
  EXPECT_EQ(Sent().size(), 2U);
  (void)Give(kChunkObjectsAt + 8 * kObject);
  EXPECT_TRUE(Put());
  EXPECT_FALSE(Put(kHead + 1));
  (void)Give(kChunkObjectsAt + kObject, kHead + 1);
  EXPECT_TRUE(Put(kHead + 1));
  EXPECT_TRUE(Put()) << "a newer chunk of another head ends nothing";
}

}  // namespace
}  // namespace erda::client
