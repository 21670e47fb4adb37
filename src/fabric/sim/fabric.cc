#include "fabric/sim/fabric.h"

#include <utility>

namespace erda::fabric {

namespace {

constexpr std::string_view kScheme = "sim:";

Status CheckAlive(const SimNode& node) {
  if (node.alive) return {};
  return {Code::kUnavailable, "node " + node.name + " was killed"};
}

Status CheckAddress(std::string_view address) {
  if (address.starts_with(kScheme) && address.size() > kScheme.size()) return {};
  return {Code::kInvalidArgument, "an address of the simulated network is sim:name, not " + std::string(address)};
}

Status CheckOptions(const SimNode& node, const ChannelOptions& options, size_t data_max) {
  const auto* queue = static_cast<const SimQueue*>(options.queue);
  if (queue == nullptr) return {Code::kInvalidArgument, "a channel needs a completion queue"};
  if (queue->node() != &node) return {Code::kInvalidArgument, "the completion queue is of another fabric"};
  if (options.private_data.size() > data_max) {
    return {Code::kInvalidArgument, "private data of " + std::to_string(options.private_data.size()) +
                                        " bytes is too long; at most " + std::to_string(data_max) + " can be carried"};
  }
  if (options.offer.size() > kOfferedRegionsMax) {
    return {Code::kInvalidArgument, std::to_string(options.offer.size()) + " regions are offered; at most " +
                                        std::to_string(kOfferedRegionsMax) + " can be"};
  }
  for (const Region* region : options.offer) {
    if (region == nullptr) return {Code::kInvalidArgument, "an offered region is null"};
    if (static_cast<const SimRegion*>(region)->node() != &node)
      return {Code::kInvalidArgument, "an offered region is of another fabric"};
    if (region->access() == Access::kLocal)
      return {Code::kInvalidArgument, "an offered region gives its peer no right; register it for remote use"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Channel>> SimIncoming::Accept(const ChannelOptions& options) {
  if (Status status = CheckAlive(*node_); !status.ok()) return status;
  if (link_->answered()) return Status(Code::kInvalidArgument, "the connection was accepted or rejected already");
  if (Status status = CheckOptions(*node_, options, kAcceptDataMax); !status.ok()) return status;
  if (const Status& error = link_->end(1).error; !error.ok()) return error;
  auto channel = std::make_unique<SimChannel>(link_, 1);
  link_->Accept(channel.get(), options);
  return std::unique_ptr<Channel>(std::move(channel));
}

void SimIncoming::Reject(std::span<const std::byte> private_data) {
  if (link_->answered()) return;
  const auto sent = private_data.first(std::min(private_data.size(), kRejectDataMax));
  link_->Refuse({sent.begin(), sent.end()}, "by the peer");
}

SimListener::SimListener(SimWorld& world, std::shared_ptr<SimNode> node, std::string_view address)
    : world_(world), node_(std::move(node)), address_(address) {
  world_.listeners.emplace(address_, this);
}

void SimListener::Vanish() {
  const auto listener = world_.listeners.find(address_);
  if (listener == world_.listeners.end() || listener->second != this) return;
  world_.listeners.erase(listener);
  for (const auto& link : std::exchange(asking_, {})) link->Refuse({}, "the listener is gone");
}

void SimListener::Arrive(std::shared_ptr<SimLink> link) {
  link->Reach(node_);
  asking_.push_back(std::move(link));
}

std::unique_ptr<Incoming> SimListener::Poll() {
  if (asking_.empty()) return nullptr;
  auto link = std::move(asking_.front());
  asking_.pop_front();
  return std::make_unique<SimIncoming>(node_, std::move(link));
}

SimFabric::SimFabric(SimWorld& world, std::string_view node, SimNetwork::Placed placed, uint32_t user)
    : world_(world), node_(std::make_shared<SimNode>()) {
  node_->name = node;
  node_->user = user;
  node_->placed = std::move(placed);
  world_.nodes.push_back(node_);
}

Result<std::unique_ptr<Region>> SimFabric::Register(const MemoryView& memory, Access access) {
  if (Status status = CheckAlive(*node_); !status.ok()) return status;
  if (memory.bytes.empty()) return Status(Code::kInvalidArgument, "a region of no bytes cannot be registered");
  return std::unique_ptr<Region>(std::make_unique<SimRegion>(node_, memory.bytes, access));
}

Result<std::unique_ptr<CompletionQueue>> SimFabric::CreateQueue() {
  if (Status status = CheckAlive(*node_); !status.ok()) return status;
  return std::unique_ptr<CompletionQueue>(std::make_unique<SimQueue>(node_));
}

Result<std::unique_ptr<Listener>> SimFabric::Listen(std::string_view address) {
  if (Status status = CheckAlive(*node_); !status.ok()) return status;
  if (Status status = CheckAddress(address); !status.ok()) return status;
  if (world_.listeners.contains(address))
    return Status(Code::kInvalidArgument, "another server listens at " + std::string(address) + " already");
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(world_, node_, address));
}

Result<std::unique_ptr<Channel>> SimFabric::Connect(std::string_view address, const ChannelOptions& options) {
  if (Status status = CheckAlive(*node_); !status.ok()) return status;
  if (Status status = CheckAddress(address); !status.ok()) return status;
  if (Status status = CheckOptions(*node_, options, kConnectDataMax); !status.ok()) return status;
  if (options.message_depth == 0 || options.message_depth > kMessageDepthMax) {
    return Status(Code::kInvalidArgument, "a message depth of " + std::to_string(options.message_depth) +
                                              " is not within 1 to " + std::to_string(kMessageDepthMax));
  }
  if (!world_.listeners.contains(address))
    return Status(Code::kUnavailable, "no server listens at " + std::string(address));
  auto link = std::make_shared<SimLink>(world_, options.message_depth);
  auto channel = std::make_unique<SimChannel>(link, 0);
  link->Ask(node_, channel.get(), options, address);
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace erda::fabric
