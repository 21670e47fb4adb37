// What one simulated process has: its regions and its completion queues.
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
  // Whether a local buffer lies within one of its regions.
  [[nodiscard]] bool Knows(std::span<const std::byte> buffer) const;

  std::string name;
  uint32_t user = 0;
  std::function<void(std::span<const std::byte>)> placed;  // may be none
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

  uint32_t channels = 0;  // that it is offered to

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
  // The channel is destroyed: nothing of it is returned any more.
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
  std::vector<std::vector<std::byte>> polled_;  // the messages that the last Poll returned
};

}  // namespace erda::fabric
