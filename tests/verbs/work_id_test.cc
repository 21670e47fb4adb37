// The ids of work requests, through which completions find their channels.
#include "fabric/verbs/work_id.h"

#include <gtest/gtest.h>

namespace erda::fabric::verbs {
namespace {

constexpr uint32_t kLastChannel = (uint32_t{1} << 31) - 1;

TEST(WorkId, WorkIdReturnsItsParts) {
  for (const uint32_t channel : {0U, 1U, 77U, kLastChannel}) {
    for (const uint32_t number : {0U, 1U, 127U, UINT32_MAX}) {
      const WorkId send(WorkId::OfSend(channel, number).word());
      EXPECT_FALSE(send.is_receive());
      EXPECT_EQ(send.channel(), channel);
      EXPECT_EQ(send.number(), number);
      const WorkId receive(WorkId::OfReceive(channel, number).word());
      EXPECT_TRUE(receive.is_receive());
      EXPECT_EQ(receive.channel(), channel);
      EXPECT_EQ(receive.number(), number);
    }
  }
}

TEST(WorkId, SendAndReceiveOfOneNumberDiffer) {
  EXPECT_FALSE(WorkId::OfSend(3, 4) == WorkId::OfReceive(3, 4));
  EXPECT_FALSE(WorkId::OfSend(3, 4) == WorkId::OfSend(4, 3));
  EXPECT_TRUE(WorkId::OfSend(3, 4) == WorkId::OfSend(3, 4));
}

}  // namespace
}  // namespace erda::fabric::verbs
