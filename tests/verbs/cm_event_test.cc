// The events of rdma_cm that end a channel.
#include "fabric/verbs/cm_event.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "fabric/verbs/handshake.h"

namespace erda::fabric::verbs {
namespace {

// Returns the event of a refusal with these bytes, padded as rdma_cm pads them.
Refusal Refuse(std::vector<std::byte> bytes, int status) {
  bytes.resize(148);
  rdma_cm_event event{};
  event.event = RDMA_CM_EVENT_REJECTED;
  event.status = status;
  event.param.conn.private_data = bytes.data();
  event.param.conn.private_data_len = static_cast<uint8_t>(bytes.size());
  return ReadRefusal(event);
}

TEST(CmEvent, EachEventThatEndsAChannelHasAReason) {
  for (const auto event :
       {RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE,
        RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL}) {
    EXPECT_FALSE(EndOf(event).empty()) << event;
  }
}

TEST(CmEvent, OtherEventsEndNoChannel) {
  for (const auto event : {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ESTABLISHED,
                           RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_ADDR_CHANGE}) {
    EXPECT_EQ(EndOf(event), "") << event;
  }
}

TEST(CmEvent, ServersRefusalHasItsData) {
  const std::string reason = "the server is full";
  const Refusal refusal = Refuse(MakeKnock(AsBytes(reason), kRejectDataMax, 0), 28);
  EXPECT_EQ(refusal.why, "the server refused the connection");
  EXPECT_EQ(AsString(refusal.data), reason);
}

TEST(CmEvent, RefusalOfTheKernelSaysThatNobodyListens) {
  const Refusal refusal = Refuse({}, 8);
  EXPECT_EQ(refusal.why, "no server listens there");
  EXPECT_TRUE(refusal.data.empty());
}

TEST(CmEvent, RefusalOfAnotherProgramHasNoData) {
  const Refusal refusal = Refuse(std::vector<std::byte>(20, std::byte{'x'}), 28);
  EXPECT_EQ(refusal.why, "the peer refused the connection");
  EXPECT_TRUE(refusal.data.empty());
}

}  // namespace
}  // namespace erda::fabric::verbs
