// A connection of the simulated network: two ends and the two directions between them. Side 0 called Connect.
// The one thread of the simulation calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/sim/end.h"
#include "fabric/sim/lane.h"
#include "fabric/sim/node.h"
#include "fabric/sim/world.h"

namespace erda::fabric {

class SimLink final : public std::enable_shared_from_this<SimLink> {
 public:
  SimLink(SimWorld& world, uint32_t message_depth);
  ~SimLink();
  SimLink(const SimLink&) = delete;
  SimLink& operator=(const SimLink&) = delete;

  // Side 0 asks for a connection.
  void Ask(std::shared_ptr<SimNode> node, Channel* channel, const ChannelOptions& options, std::string_view address);
  // The request has reached a process. It is side 1 from now on, and will answer.
  void Reach(std::shared_ptr<SimNode> node) { ends_[1].node = std::move(node); }
  // REQUIRES: the request was not answered, and side 1 has no error.
  void Accept(Channel* channel, const ChannelOptions& options);
  void Refuse(std::vector<std::byte> private_data, std::string_view why);

  Status Post(uint64_t side, std::span<const WorkRequest> batch);
  // Executes a Read by chance, if it is the next operation.
  bool ReadNow(uint64_t side, std::span<std::byte> local, RemoteAddress remote);
  void Consumed(uint64_t side) { lanes_[1 - side].Consumed(); }
  // Opens a window for this end's peer. The window opens at once, perhaps before the peer hears of it. It is closed
  // when everything that goes through it at that time is placed.
  Result<uint32_t> OpenWindow(uint64_t side, const Region& region, uint64_t offset, uint64_t bytes);
  Status CloseWindow(uint64_t side, uint32_t key, uint64_t id);

  // Breaks the wire.
  void Drop();
  // Handles an operation of a side that reaches outside of its rights.
  void Deny(uint64_t side);
  // Handles the wish of this end's owner for a fence. On half of the links, as over verbs, closing the end is a fence
  // at once. On the others, as over shm, it is a fence once the pieces under way are placed.
  bool Fence(uint64_t side);
  // The owner of this end closes it, or was killed.
  void Leave(uint64_t side, bool killed);
  // Kills all ends that belong to this process.
  void Kill(const SimNode& node);

  [[nodiscard]] const SimEnd& end(uint64_t side) const { return ends_[side]; }
  [[nodiscard]] bool answered() const { return answered_; }
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  void Connected(uint64_t side);
  void EndWindow(uint64_t side, uint32_t key);
  [[nodiscard]] bool WaitsToFence(uint64_t side) const;
  void Cut(bool keep_completed);
  void Fail(uint64_t side, const Status& why);
  void FailLater(uint64_t side, Nanoseconds not_before, Status why);

  SimWorld& world_;
  const uint64_t number_;
  const uint32_t message_depth_;
  bool answered_ = false;
  std::vector<RemoteRegion> asked_with_;  // Regions that side 0 offered. Side 0 may have left since.
  SimEnd ends_[2];
  SimLane lanes_[2];  // By the side that posts.
};

class SimChannel final : public Channel {
 public:
  SimChannel(std::shared_ptr<SimLink> link, uint64_t side) : link_(std::move(link)), side_(side) {}
  ~SimChannel() override { link_->Leave(side_, false); }

  Status Post(std::span<const WorkRequest> batch) override { return link_->Post(side_, batch); }
  bool ReadNow(std::span<std::byte> local, RemoteAddress remote) override {
    return link_->ReadNow(side_, local, remote);
  }
  bool Fence() override { return link_->Fence(side_); }
  Result<uint32_t> OpenWindow(const Region& region, uint64_t offset, uint64_t bytes) override {
    return link_->OpenWindow(side_, region, offset, bytes);
  }
  Status CloseWindow(uint32_t key, uint64_t id) override { return link_->CloseWindow(side_, key, id); }
  [[nodiscard]] bool connected() const override { return end().connected; }
  [[nodiscard]] std::span<const RemoteRegion> peer_regions() const override { return end().peer_regions; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return end().peer_data; }
  [[nodiscard]] const Status& error() const override { return end().error; }

  // The owner polled a message.
  void Consumed() { link_->Consumed(side_); }
  [[nodiscard]] SimLink& link() const { return *link_; }

 private:
  [[nodiscard]] const SimEnd& end() const { return link_->end(side_); }

  const std::shared_ptr<SimLink> link_;
  const uint64_t side_;
};

}  // namespace erda::fabric
