// The completion queue of the device that a VerbsQueue takes completions from.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "erda/status.h"

namespace erda::fabric::verbs {

class Device;

// Owns the ibv_cq, and the completion channel that wakes its owner. It has an entry for each request and receive that
// may complete before the next Poll. The thread of the queue calls it.
class Cq {
 public:
  static constexpr uint32_t kEntriesAtFirst = 1024;

  Cq() = default;
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  // The other functions require Create.
  Status Create(const Device& device);
  // Makes room for this number of completions. Returns kResourceExhausted if the device does not have it.
  Status Reserve(uint32_t entries);
  void Release(uint32_t entries) { needed_ -= entries; }
  // Returns the number of entries to which a queue of `now` entries grows. The queue doubles, or gets the needed
  // entries if they are more. It never gets more than `most`. REQUIRES: now < needed <= most.
  [[nodiscard]] static uint32_t GrownTo(uint32_t now, uint32_t needed, uint32_t most);

  // Takes completions, and returns their number. Returns a negative number if the device fails.
  int Poll(std::span<ibv_wc> completions) {
    return ibv_poll_cq(cq_, static_cast<int>(completions.size()), completions.data());
  }
  // Makes the descriptor readable at the next completion.
  void Arm() { (void)ibv_req_notify_cq(cq_, 0); }
  // Makes the descriptor unreadable again.
  void Acknowledge();
  [[nodiscard]] int descriptor() const { return channel_->fd; }
  [[nodiscard]] ibv_cq* get() const { return cq_; }

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t needed_ = 0;
  uint32_t most_ = 0;
};

}  // namespace erda::fabric::verbs
