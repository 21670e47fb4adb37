// Two nodes of a simulated network, with memory and a channel between them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fixture.h"
#include "fabric/sim/network.h"

namespace erda::fabric {

struct SimPair {
  static constexpr size_t kBytes = 64 << 10;

  explicit SimPair(uint64_t seed, const SimOptions& options = {}) : network(seed, options) {
    int side = 0;
    for (End* end : {&server, &client}) {
      fabrics.push_back(network.CreateFabric(side++ == 0 ? "server" : "client"));
      end->fabric = fabrics.back().get();
      end->memory = std::move(*SharedMemory::Create("erda-test", kBytes));
      end->region = std::move(*end->fabric->Register(end->memory.view(), Access::kRemoteReadWrite));
      end->queue = std::move(*end->fabric->CreateQueue());
    }
    listener = std::move(*server.fabric->Listen("sim:server"));
    Connect();
  }

  void Connect() {
    client.channel = std::move(*client.fabric->Connect("sim:server", Options(client)));
    std::unique_ptr<Incoming> incoming;
    while ((incoming = listener->Poll()) == nullptr && network.Step()) {
    }
    server.channel = std::move(*incoming->Accept(Options(server)));
    while (!client.channel->connected() && network.Step()) {
    }
    for (End* end : {&client, &server}) {
      end->Poll();
      end->events.clear();
    }
  }
  ChannelOptions Options(const End& end) {
    Region*& offered = end.fabric == server.fabric ? offered_by_server : offered_by_client;
    offered = end.region.get();
    ChannelOptions options;
    options.queue = end.queue.get();
    options.offer = {&offered, 1};
    return options;
  }
  bool Step() {
    const bool more = network.Step();
    server.Poll();
    client.Poll();
    return more;
  }
  void Run() {
    while (Step()) {
    }
  }

  SimNetwork network;
  std::vector<std::shared_ptr<Fabric>> fabrics;
  End server;
  End client;
  std::unique_ptr<Listener> listener;
  Region* offered_by_server = nullptr;
  Region* offered_by_client = nullptr;
};

}  // namespace erda::fabric
