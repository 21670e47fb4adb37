#include "fabric/sim/network.h"

#include <utility>
#include <vector>

#include "fabric/sim/fabric.h"
#include "fabric/sim/link.h"
#include "fabric/sim/world.h"

namespace erda::fabric {

SimNetwork::SimNetwork(uint64_t seed, SimOptions options)
    : world_(std::make_unique<SimWorld>(seed, std::move(options))) {}

SimNetwork::~SimNetwork() = default;

std::shared_ptr<Fabric> SimNetwork::CreateFabric(std::string_view node, Placed placed, uint32_t user) {
  return std::make_shared<SimFabric>(*world_, node, std::move(placed), user);
}

Nanoseconds SimNetwork::Now() const { return world_->events.now(); }
bool SimNetwork::Step() { return world_->events.Step(); }
void SimNetwork::RunUntil(Nanoseconds time) { world_->events.RunUntil(time); }
uint64_t SimNetwork::history_hash() const { return world_->history; }
const SimCounts& SimNetwork::counts() const { return world_->counts; }

void SimNetwork::CalmDown() { world_->options.drop_chance = 0; }

void SimNetwork::DropChannel(const Channel& channel) { static_cast<const SimChannel&>(channel).link().Drop(); }

bool SimNetwork::DropChannel() {
  std::vector<SimLink*> connected;
  for (const auto& [number, link] : world_->links) {
    if (link->end(0).connected && link->end(1).connected) connected.push_back(link);
  }
  if (connected.empty()) return false;
  connected[world_->random.Uniform(connected.size())]->Drop();
  return true;
}

void SimNetwork::KillNode(std::string_view node) {
  for (const auto& weak : world_->nodes) {
    const std::shared_ptr<SimNode> killed = weak.lock();
    if (killed == nullptr || !killed->alive || killed->name != node) continue;
    killed->alive = false;
    auto listeners = world_->listeners;
    for (const auto& [address, listener] : listeners) {
      if (&listener->node() == killed.get()) listener->Vanish();
    }
    for (const auto& [number, link] : world_->links) link->Kill(*killed);
  }
}

}  // namespace erda::fabric
