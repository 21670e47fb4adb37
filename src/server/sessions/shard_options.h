// The options of a shard, which it gets when it is made. Plain data.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/server_time.h"
#include "erda/server.h"
#include "format/hello.h"
#include "mirror/primary_pool.h"
#include "server/control/expiry_clock.h"

namespace erda::server {

struct ShardOptions {
  uint32_t max_clients = 1024;
  uint32_t slots_per_client = format::kSlotsMax;
  uint32_t slot_bytes = 16384;
  uint32_t reservations_per_client = 1024;
  uint32_t clients_per_token = 0;    // Connections with one token, or of one client id; 0: no such limit.
  uint32_t requests_per_second = 0;  // Of one client; more than these wait. 0: no limit.
  PoolWrites pool_writes = PoolWrites::kSameUser;
  uint64_t staging_bytes = 4 << 20;  // Of each session that may not write into the pool; at least a segment.
  uint64_t server_id = 0;
  bool index_grows = true;  // VersionsOptions
  const ServerTime* time = &ServerTime::OfThisMachine();
  uint64_t note_ahead = ExpiryClock::kNoteAhead;  // milliseconds
  const Clock* clock = &SteadyClock::Instance();  // measures how long requests take
  mirror::PrimaryPool* mirrored = nullptr;        // the pool, if it has mirrors
};

}  // namespace erda::server
