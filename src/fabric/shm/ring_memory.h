// The memory of a channel's two rings. The connecting end makes it, and the accepting end maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/shared_memory.h"
#include "fabric/shm/memory_map.h"
#include "fabric/shm/ring.h"

namespace erda::fabric::shm {

// Outlives the rings that it returns. The thread of the channel's queue calls it.
class RingMemory {
 public:
  // Returns the number of bytes of two rings for this number of messages each.
  static constexpr uint64_t Bytes(uint32_t depth) { return 2 * Ring::Bytes(depth); }

  // REQUIRES for both: the memory has Bytes(depth) bytes. Both ends give the same depth.
  RingMemory(SharedMemory made, uint32_t depth) : made_(std::move(made)), bytes_(made_.bytes()), depth_(depth) {}
  RingMemory(std::shared_ptr<Mapping> mapped, uint32_t depth)
      : mapped_(std::move(mapped)), bytes_(mapped_->bytes()), depth_(depth) {}

  // Returns one end's view of the ring in which the connecting end sends.
  [[nodiscard]] Ring of_connecting_end() const { return {bytes_.data(), depth_}; }
  // Returns one end's view of the ring in which the accepting end sends.
  [[nodiscard]] Ring of_accepting_end() const { return {bytes_.data() + Ring::Bytes(depth_), depth_}; }

 private:
  SharedMemory made_;                // Of the connecting end.
  std::shared_ptr<Mapping> mapped_;  // Of the accepting end.
  std::span<std::byte> bytes_;
  uint32_t depth_;
};

}  // namespace erda::fabric::shm
