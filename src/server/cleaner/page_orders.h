// Which pages of the pool a shard wants its cleaner to make, and how near the log is to them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/spsc_queue.h"

namespace erda::server {

// Somebody will store into these bytes of the pool.
struct PageOrder {
  static constexpr uint64_t kNever = UINT64_MAX;
  enum class Work : uint8_t {
    kMake,    // Make the pages.
    kEnlarge  // The first store into a page shall make a large one.
  };

  uint64_t offset = 0;
  uint64_t bytes = 0;
  // How many bytes the log has appended, in all, before it reaches the first byte. kNever: it is not on its way there.
  uint64_t reached_at = kNever;
  Work work = Work::kMake;
};

// The shard's thread pushes and stores, and the cleaner's thread pops and loads. An order says nothing about what
// stands in the bytes.
struct PageOrders {
  SpscQueue<PageOrder, 16> queue;
  // The bytes that the log has appended, at the last look. Relaxed: it orders no other memory.
  std::atomic<uint64_t> appended{0};
};

}  // namespace erda::server
