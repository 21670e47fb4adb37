// Which pages of the pool a shard wants its cleaner to make.
#pragma once

#include <cstdint>

#include "base/spsc_queue.h"

namespace erda::server {

// Somebody will soon store into these bytes of the pool.
struct PageOrder {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// The shard's thread pushes, and the cleaner's thread pops. An order says nothing about what stands in the bytes.
using PageOrders = SpscQueue<PageOrder, 16>;

}  // namespace erda::server
