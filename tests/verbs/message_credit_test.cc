// The room for messages on a channel: counts that both ends keep.
#include "fabric/verbs/message_credit.h"

#include <gtest/gtest.h>

namespace erda::fabric::verbs {
namespace {

constexpr uint32_t kDepth = 4;

class MessageCreditTest : public testing::Test {
 protected:
  MessageCreditTest() { credit_.Begin(&page_); }

  // Sends messages that go to the queue pair at once.
  MessageRoom Send(uint32_t messages) {
    const MessageRoom room = credit_.Take(messages, pushed_);
    if (room == MessageRoom::kTaken) pushed_ += messages;
    return room;
  }
  void Consume(uint32_t messages) {
    for (uint32_t i = 0; i < messages; ++i) {
      ASSERT_TRUE(credit_.Arrive());
      credit_.Consume();
    }
  }

  CreditPage page_;
  MessageCredit credit_{kDepth};
  uint64_t pushed_ = 0;
};

TEST_F(MessageCreditTest, DepthMessagesHaveRoom) {
  EXPECT_EQ(Send(1), MessageRoom::kTaken);
  EXPECT_EQ(Send(3), MessageRoom::kTaken);
  EXPECT_EQ(Send(1), MessageRoom::kAsk);
}

TEST_F(MessageCreditTest, BatchHasRoomAsAWholeOrNotAtAll) {
  ASSERT_EQ(Send(2), MessageRoom::kTaken);
  EXPECT_EQ(Send(3), MessageRoom::kAsk);
  EXPECT_EQ(Send(2), MessageRoom::kTaken) << "the refused batch counts nothing";
}

TEST_F(MessageCreditTest, BatchWithoutMessagesNeedsNoRoom) {
  ASSERT_EQ(Send(kDepth), MessageRoom::kTaken);
  EXPECT_EQ(Send(0), MessageRoom::kTaken);
  MessageCredit early(kDepth);
  EXPECT_EQ(early.Take(0, 0), MessageRoom::kTaken) << "it looks into no page";
}

TEST_F(MessageCreditTest, ToldCountMakesRoom) {
  ASSERT_EQ(Send(kDepth), MessageRoom::kTaken);
  page_.told = 3;
  EXPECT_EQ(Send(3), MessageRoom::kTaken);
  EXPECT_EQ(Send(1), MessageRoom::kAsk);
}

TEST_F(MessageCreditTest, OneReadIsUnderWayAtATime) {
  ASSERT_EQ(Send(kDepth), MessageRoom::kTaken);
  ASSERT_EQ(Send(1), MessageRoom::kAsk);
  EXPECT_EQ(Send(1), MessageRoom::kNone);
  credit_.OnAnswer();
  EXPECT_EQ(Send(1), MessageRoom::kAsk) << "the answer made no room";
}

TEST_F(MessageCreditTest, AnswerCountsOnlyWhenTheReadIsDone) {
  ASSERT_EQ(Send(kDepth), MessageRoom::kTaken);
  ASSERT_EQ(Send(1), MessageRoom::kAsk);
  page_.asked = 2;  // The device is still placing it.
  EXPECT_EQ(Send(1), MessageRoom::kNone);
  credit_.OnAnswer();
  EXPECT_EQ(Send(2), MessageRoom::kTaken);
  EXPECT_EQ(Send(1), MessageRoom::kAsk);
}

TEST_F(MessageCreditTest, MoreMessagesThanTheDepthAskForNothing) {
  EXPECT_EQ(Send(kDepth + 1), MessageRoom::kNone);
  EXPECT_EQ(Send(UINT32_MAX), MessageRoom::kNone);
  EXPECT_EQ(Send(kDepth), MessageRoom::kTaken);
}

TEST_F(MessageCreditTest, OlderCountTakesNoRoomBack) {
  ASSERT_EQ(Send(kDepth), MessageRoom::kTaken);
  page_.told = 4;
  ASSERT_EQ(Send(2), MessageRoom::kTaken);
  page_.told = 1;
  EXPECT_EQ(Send(2), MessageRoom::kTaken);
}

TEST_F(MessageCreditTest, ToldCountOfUnsentMessagesBreaksTheRules) {
  ASSERT_EQ(Send(2), MessageRoom::kTaken);
  page_.told = 2;
  EXPECT_EQ(Send(1), MessageRoom::kTaken);
  for (const uint64_t more : {uint64_t{4}, UINT64_MAX}) {
    page_.told = more;
    EXPECT_EQ(Send(1), MessageRoom::kBrokenRules) << more;
  }
}

TEST_F(MessageCreditTest, AnsweredCountOfUnsentMessagesBreaksTheRules) {
  ASSERT_EQ(Send(kDepth), MessageRoom::kTaken);
  page_.asked = kDepth + 1;
  EXPECT_EQ(Send(1), MessageRoom::kBrokenRules);
}

// A message that waits in this end cannot have been consumed.
TEST_F(MessageCreditTest, CountOfMessagesThatWaitBreaksTheRules) {
  ASSERT_EQ(credit_.Take(kDepth, 0), MessageRoom::kTaken);
  page_.told = 2;
  EXPECT_EQ(credit_.Take(1, 1), MessageRoom::kBrokenRules);
  EXPECT_EQ(credit_.Take(1, 2), MessageRoom::kTaken);
}

TEST_F(MessageCreditTest, PeerHasRoomForDepthMessages) {
  for (uint32_t i = 0; i < kDepth; ++i) EXPECT_TRUE(credit_.Arrive()) << i;
  EXPECT_FALSE(credit_.Arrive());
}

TEST_F(MessageCreditTest, ConsumedMessageMakesRoomForThePeer) {
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(credit_.Arrive());
  credit_.Consume();
  EXPECT_TRUE(credit_.Arrive());
  EXPECT_FALSE(credit_.Arrive());
}

TEST_F(MessageCreditTest, PageHasTheCountOfConsumedMessages) {
  Consume(3);
  EXPECT_EQ(page_.consumed, 3U);
  EXPECT_EQ(page_.told, 0U);
  EXPECT_EQ(page_.asked, 0U);
}

TEST_F(MessageCreditTest, HalfTheDepthIsTold) {
  EXPECT_FALSE(credit_.MustTell());
  Consume(1);
  EXPECT_FALSE(credit_.MustTell());
  Consume(1);
  EXPECT_TRUE(credit_.MustTell());
  EXPECT_FALSE(credit_.MustTell()) << "it is told";
  Consume(2);
  EXPECT_TRUE(credit_.MustTell());
}

TEST_F(MessageCreditTest, EachMessageOfADepthOfOneIsTold) {
  MessageCredit credit(1);
  credit.Begin(&page_);
  EXPECT_FALSE(credit.MustTell());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(credit.Arrive());
    credit.Consume();
    EXPECT_TRUE(credit.MustTell()) << i;
  }
}

}  // namespace
}  // namespace erda::fabric::verbs
