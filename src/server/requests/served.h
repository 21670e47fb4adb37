// The result of a request that the shard served. A value.
#pragma once

#include <variant>

#include "server/sessions/session.h"
#include "server/versions/versions.h"

namespace erda::server {

// The reply is in the batch, or the end of the commit adds it.
struct Replied {};
// There is no room for the put in the log, and the shard expects some.
struct AwaitsRoom {};
// Another client's unfinished version of the key decides. `present` names it.
struct AwaitsWriter {
  Present present;
};

using Served = std::variant<Replied, AwaitsRoom, AwaitsWriter, Violation>;

}  // namespace erda::server
