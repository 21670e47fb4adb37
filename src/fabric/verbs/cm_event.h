// Reads the events of rdma_cm that end a channel.
//
// Owns nothing. Requires: the event is not acknowledged yet. Any thread may call these functions.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace erda::fabric::verbs {

// Returns the reason for which the event ends a channel, as text for a message. Returns an empty text if the event ends
// none.
std::string_view EndOf(rdma_cm_event_type event);

// The peer's answer to a request to connect, if it refused the request.
struct Refusal {
  std::string_view why;
  std::vector<std::byte> data;  // The caller's data, if a server of Erda refused.
};

// Reads an RDMA_CM_EVENT_REJECTED.
Refusal ReadRefusal(const rdma_cm_event& event);

}  // namespace erda::fabric::verbs
