// A fabric that a shard is reached on, and what the shard has there. Plain data; the fabric, the pool's regions and the
// queue outlive the shard.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "erda/server.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "nvm/pool.h"
#include "server/activity.h"

namespace erda::server {

// The pool as a fabric knows it: registered once, offered by all shards.
struct PoolRegions {
  std::unique_ptr<fabric::Region> readable;  // with windows, if the fabric has them and somebody may have one
  std::unique_ptr<fabric::Region> writable;  // none if it is nobody's to write
  static Result<PoolRegions> Register(fabric::Fabric& fabric, const nvm::Pool& pool,
                                      PoolWrites writes = PoolWrites::kSameUser);
};

// A fabric that a shard is reached on, the pool's regions there, and the shard's own queue.
struct Port {
  fabric::Fabric& fabric;
  const PoolRegions& pool_regions;
  fabric::CompletionQueue& queue;
  format::FlushMethod flush_method = format::FlushMethod::kNone;  // of its sessions
  std::optional<size_t> for_readers = std::nullopt;               // the port of those who come here, and may only read
};

// Names the fabrics of the ports in the statistics. Returns the number under which these count each port.
std::vector<size_t> NameFabrics(std::span<const Port> ports, ActivityCounts& activity);

}  // namespace erda::server
