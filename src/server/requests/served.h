// The result of a request that the shard served. A value.
#pragma once

#include <cstdint>
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
// On a pool with a journal: the request of this key waits until the medium holds `present`.
struct AwaitsMedium {
  Present present;
  uint64_t key_hash = 0;
  bool for_slot = false;  // It is a delete, and `present` is the tombstone of another key, in the slot that it needs.
};

using Served = std::variant<Replied, AwaitsRoom, AwaitsWriter, AwaitsMedium, Violation>;

}  // namespace erda::server
