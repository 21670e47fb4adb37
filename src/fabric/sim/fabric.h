// The connection of a simulated process to the simulated network.
//
// Owns its share of the process's node. Requires: the world outlives it. The one thread of the simulation calls it.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/fabric.h"
#include "fabric/sim/link.h"
#include "fabric/sim/node.h"
#include "fabric/sim/world.h"

namespace erda::fabric {

class SimIncoming final : public Incoming {
 public:
  SimIncoming(std::shared_ptr<SimNode> node, std::shared_ptr<SimLink> link)
      : node_(std::move(node)), link_(std::move(link)) {}
  ~SimIncoming() override { Reject({}); }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return link_->end(1).peer_data; }
  [[nodiscard]] PeerUser peer_user() const override {
    return link_->end(0).node->user == node_->user ? PeerUser::kSame : PeerUser::kOther;
  }
  Result<std::unique_ptr<Channel>> Accept(const ChannelOptions& options) override;
  void Reject(std::span<const std::byte> private_data) override;

 private:
  const std::shared_ptr<SimNode> node_;
  const std::shared_ptr<SimLink> link_;
};

class SimListener final : public Listener {
 public:
  SimListener(SimWorld& world, std::shared_ptr<SimNode> node, std::string_view address);
  ~SimListener() override { Vanish(); }
  [[nodiscard]] const std::string& address() const override { return address_; }
  std::unique_ptr<Incoming> Poll() override;
  void Wait(std::chrono::nanoseconds /*timeout*/) override {}
  void Wake() override {}

  void Arrive(std::shared_ptr<SimLink> link);
  // Stops listening, and refuses the peers that asked.
  void Vanish();
  [[nodiscard]] const SimNode& node() const { return *node_; }

 private:
  SimWorld& world_;
  const std::shared_ptr<SimNode> node_;
  const std::string address_;
  std::deque<std::shared_ptr<SimLink>> asking_;
};

class SimFabric final : public Fabric {
 public:
  SimFabric(SimWorld& world, std::string_view node, SimNetwork::Placed placed, uint32_t user);
  [[nodiscard]] std::string_view scheme() const override { return "sim"; }
  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities capabilities;
    capabilities.knows_users = true;
    capabilities.memory_windows = world_.options.memory_windows;
    capabilities.nic_writes = world_.options.nic_writes;
    capabilities.reads_in_order = world_.options.reads_in_order;
    return capabilities;
  }
  Result<std::unique_ptr<Region>> Register(const MemoryView& memory, Access access) override;
  Result<std::unique_ptr<CompletionQueue>> CreateQueue() override;
  Result<std::unique_ptr<Listener>> Listen(std::string_view address) override;
  Result<std::unique_ptr<Channel>> Connect(std::string_view address, const ChannelOptions& options) override;

 private:
  SimWorld& world_;
  const std::shared_ptr<SimNode> node_;
};

}  // namespace erda::fabric
