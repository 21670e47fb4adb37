// Makes the work request that a queue pair takes from a request of the fabric. The thread of the channel's queue calls
// it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "fabric/verbs/peer_offer.h"
#include "fabric/verbs/request.h"
#include "fabric/verbs/windows.h"

namespace erda::fabric::verbs {

// Fills everything of `work` that the request alone decides: operation, local bytes, place in the peer's memory, and
// IBV_SEND_INLINE for at most `inline_bytes` bytes. The caller adds id, link and the other flags. `piece` must live
// until the work is posted. REQUIRES: the window of a kOpenWindow is in `windows`.
void MakeWork(const Request& request, const PeerOffer& peer, const Windows& windows, uint32_t inline_bytes,
              ibv_send_wr* work, ibv_sge* piece);

}  // namespace erda::fabric::verbs
