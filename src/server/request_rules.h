// What the protocol allows of a request, by its own bytes and the rights of its session. Pure functions: each gets a
// private copy of the request, which its client cannot change.
#pragma once

#include <cstddef>

#include "format/geometry.h"
#include "format/messages.h"
#include "server/session.h"

namespace erda::server {

// Returns true if the shard may keep the request until there is room in the log. A delegated put has its space: if it
// waited, its client would have to keep its chunk, which may be in the way of the room that it waits for.
[[nodiscard]] bool MayWait(const format::Request& request);
// Returns what is wrong with the condition of the request, or with the place in the pool that it names.
Violation CheckRights(const format::Request& request, const Session& session);
// Returns what is wrong with the numbers of a request for a key. slot_bytes: of the slot that has the request.
Violation CheckNumbers(const format::Request& request, size_t slot_bytes, const Session& session,
                       const format::Geometry& geometry);

}  // namespace erda::server
