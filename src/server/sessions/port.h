// A fabric on which clients reach a shard, with the pool's registered memory and the shard's queue there. Plain data.
// Requires: these outlive the shard.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "erda/server.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "nvm/pool.h"
#include "server/control/activity.h"

namespace erda::server {

// The pool's registered memory at one fabric: registered once, and offered by all shards.
struct PoolRegions {
  std::unique_ptr<fabric::Region> readable;  // with windows, if the fabric has them and a client may have one
  std::unique_ptr<fabric::Region> writable;  // null if no client may write
  static Result<PoolRegions> Register(fabric::Fabric& fabric, const nvm::Pool& pool,
                                      PoolWrites writes = PoolWrites::kSameUser);
};

// A fabric on which clients reach a shard, the pool's registered memory there, and the shard's queue.
struct Port {
  fabric::Fabric& fabric;
  const PoolRegions& pool_regions;
  fabric::CompletionQueue& queue;
  format::FlushMethod flush_method = format::FlushMethod::kNone;  // of the sessions of this port
  std::optional<size_t> for_readers = std::nullopt;  // the port for clients that come by this one and may only read
};

// Names the fabrics of the ports in the statistics. Returns the number under which these count each port.
std::vector<size_t> NameFabrics(std::span<const Port> ports, ActivityCounts& activity);

}  // namespace erda::server
