#include "fabric/shm/peer_memory.h"

#include <cassert>
#include <utility>

namespace erda::fabric::shm {

Result<PeerMemory> PeerMemory::Map(const Greeting& greeting, std::span<const UniqueFd> fds, MemoryMaps* maps,
                                   MemoryMaps::Trust trust) {
  assert(fds.size() == greeting.regions);
  PeerMemory memory;
  for (uint32_t i = 0; i < greeting.regions; ++i) {
    const RemoteRegion region{greeting.region_sizes[i], static_cast<Access>(greeting.region_access[i])};
    auto mapping = maps->Map(fds[i], region.size, region.access == Access::kRemoteReadWrite, trust);
    if (!mapping.ok()) return mapping.status();
    memory.regions_.push_back(region);
    memory.places_.push_back((*mapping)->bytes().data());
    memory.mappings_.push_back(*std::move(mapping));
  }
  return memory;
}

}  // namespace erda::fabric::shm
