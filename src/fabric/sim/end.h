// One end of a simulated connection: its owner's channel and queue, and the memory that the other end may use.
// The one thread of the simulation calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/sim/node.h"

namespace erda::fabric {

// `channel` is null before a channel exists, and forever after it was destroyed or killed.
struct SimEnd {
  // Adds a completion to the queue, in the order of these calls.
  void Complete(OpKind kind, const WorkRequest& request, Code code);
  void Receive(OpKind kind, uint32_t imm, uint32_t bytes, std::vector<std::byte> message);
  // Counts the channel for its queue and its offered regions, which must outlive it.
  void Hold(Channel* held, const ChannelOptions& options);
  void Release();

  // Returns true if the other end may execute the request in this end's memory.
  [[nodiscard]] bool Permits(const WorkRequest& request) const;
  // Returns the bytes of this end that the request reads or writes. REQUIRES: it transfers bytes, and is permitted.
  [[nodiscard]] std::byte* BytesOf(const WorkRequest& request) const;

  std::shared_ptr<SimNode> node;
  Channel* channel = nullptr;
  SimQueue* queue = nullptr;
  std::vector<SimRegion*> offer;
  std::vector<std::byte> peer_data;
  std::vector<RemoteRegion> peer_regions;
  // Windows in this end's memory into which the other end may write, by key.
  struct Window {
    const SimRegion* region = nullptr;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  std::map<uint32_t, Window> windows;
  std::map<uint32_t, uint64_t> closing;  // By key: the id of the completion that will report it.
  bool connected = false;
  bool fencing = false;
  Status error;
};

}  // namespace erda::fabric
