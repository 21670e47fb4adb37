// The regions and completion queues of one simulated process.
//
// A queue owns the completions and messages that its process has not polled. A region does not own its bytes. Both
// must outlive the channels that use them. The one thread of the simulation calls them.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fabric.h"

namespace erda::fabric {

class SimRegion;

struct SimNode {
  // Returns true if a local buffer lies within one of the regions.
  [[nodiscard]] bool Knows(std::span<const std::byte> buffer) const;

  std::string name;
  uint32_t user = 0;
  std::function<void(std::span<const std::byte>)> placed;  // May be empty.
  bool alive = true;
  std::vector<const SimRegion*> regions;
};

class SimRegion final : public Region {
 public:
  SimRegion(std::shared_ptr<SimNode> node, std::span<std::byte> bytes, Access access)
      : node_(std::move(node)), bytes_(bytes), access_(access) {
    node_->regions.push_back(this);
  }
  ~SimRegion() override {
    assert(channels == 0 && "a region outlives the channels it is offered to");
    std::erase(node_->regions, this);
  }
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }
  [[nodiscard]] Access access() const override { return access_; }
  [[nodiscard]] const SimNode* node() const { return node_.get(); }

  uint32_t channels = 0;  // The number of channels on which the region is offered.

 private:
  const std::shared_ptr<SimNode> node_;
  const std::span<std::byte> bytes_;
  const Access access_;
};

class SimQueue final : public CompletionQueue {
 public:
  explicit SimQueue(std::shared_ptr<SimNode> node) : node_(std::move(node)) {}
  ~SimQueue() override { assert(channels == 0 && "a queue outlives its channels"); }

  size_t Poll(std::span<Completion> out) override;
  void Wait(std::chrono::nanoseconds /*timeout*/) override {}
  bool Arm(std::chrono::nanoseconds* /*at_most*/) override { return false; }
  [[nodiscard]] int descriptor() const override { return -1; }
  void Disarm() override {}
  void Wake() override {}

  void Push(const Completion& completion, std::vector<std::byte> message = {}) {
    ready_.push_back({completion, std::move(message)});
  }
  // Drops the completions of a channel that is being destroyed.
  void Forget(const Channel* channel) {
    std::erase_if(ready_, [channel](const Entry& entry) { return entry.completion.channel == channel; });
  }
  [[nodiscard]] const SimNode* node() const { return node_.get(); }

  uint32_t channels = 0;

 private:
  struct Entry {
    Completion completion;
    std::vector<std::byte> message;
  };

  const std::shared_ptr<SimNode> node_;
  std::deque<Entry> ready_;
  std::vector<std::vector<std::byte>> polled_;  // The messages that the last Poll returned.
};

}  // namespace erda::fabric
