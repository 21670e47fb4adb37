// What a shard is told when it is made.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/server_time.h"
#include "erda/server.h"
#include "format/messages.h"
#include "server/expiry_clock.h"

namespace erda::server {

struct ShardOptions {
  uint32_t max_clients = 1024;
  uint32_t slots_per_client = format::kSlotsMax;
  uint32_t slot_bytes = 16384;
  uint32_t reservations_per_client = 1024;
  uint32_t clients_per_token = 0;    // connections with one token, or of one client id; 0: no limit of their own
  uint32_t requests_per_second = 0;  // of one client that are served; what is more waits. 0: no limit
  PoolWrites pool_writes = PoolWrites::kSameUser;
  uint64_t staging_bytes = 4 << 20;  // of each session that may not write into the pool, or a segment if that is more
  uint64_t server_id = 0;
  bool index_grows = true;  // VersionsOptions
  const ServerTime* time = &ServerTime::OfThisMachine();
  uint64_t note_ahead = ExpiryClock::kNoteAhead;  // milliseconds
  const Clock* clock = &SteadyClock::Instance();  // by which requests are timed
};

}  // namespace erda::server
