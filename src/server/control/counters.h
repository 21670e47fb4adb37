// A shard's counters, in its control block, where clients and Server::stats() read them. One thread writes each
// counter: the shard's, the cleaner's, or the syncer's. Any thread reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "format/control_block.h"

namespace erda::server {

// There is one writer and any number of readers, and no order between counters, so all accesses are relaxed.
class Counters {
 public:
  explicit Counters(std::span<std::byte> control)
      : words_(reinterpret_cast<uint64_t*>(control.data() + offsetof(format::ControlBlock, counters))) {}

  void Add(format::Counter counter, uint64_t n = 1) { Set(counter, Get(counter) + n); }
  void Set(format::Counter counter, uint64_t n) { At(counter).store(n, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t Get(format::Counter counter) const { return At(counter).load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::atomic_ref<uint64_t> At(format::Counter counter) const {
    return std::atomic_ref<uint64_t>(words_[static_cast<uint32_t>(counter)]);
  }
  uint64_t* words_;
};

}  // namespace erda::server
