#include "fabric/verbs/cm_event.h"

#include "fabric/verbs/handshake.h"

namespace erda::fabric::verbs {

std::string_view EndOf(rdma_cm_event_type event) {
  switch (event) {
    case RDMA_CM_EVENT_REJECTED:  // The kernel reports an end so if it comes before the last step of its handshake.
    case RDMA_CM_EVENT_DISCONNECTED:
      return "the peer closed the connection";
    case RDMA_CM_EVENT_ADDR_ERROR:
      return "no machine answers for this address; check it, and that an RDMA device here reaches its network";
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "no RDMA route leads there";
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return "the connection could not be made";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "it does not answer";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "the RDMA device was removed";
    default:
      return {};
  }
}

Refusal ReadRefusal(const rdma_cm_event& event) {
  Knock knock;
  std::vector<std::byte> data;
  if (ReadKnock(event.param.conn.private_data, event.param.conn.private_data_len, &knock, &data)) {
    return {"the server refused the connection", std::move(data)};
  }
  constexpr int kInvalidServiceId = 8;  // Of the InfiniBand specification.
  return {event.status == kInvalidServiceId ? "no server listens there" : "the peer refused the connection", {}};
}

}  // namespace erda::fabric::verbs
