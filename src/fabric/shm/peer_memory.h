// The registered regions that the peer of a channel offered, mapped here, and the rights of this end to them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/shm/memory_map.h"
#include "fabric/shm/socket.h"

namespace erda::fabric::shm {

// Constant after Map. So any thread may read it.
class PeerMemory {
 public:
  // Maps the regions of the peer's greeting, each from its descriptor. REQUIRES: there is a descriptor for each region.
  static Result<PeerMemory> Map(const Greeting& greeting, std::span<const UniqueFd> fds, MemoryMaps* maps,
                                MemoryMaps::Trust trust);

  // Offers nothing.
  PeerMemory() = default;

  [[nodiscard]] std::span<const RemoteRegion> regions() const { return regions_; }
  // Returns the place where the remote bytes are mapped. Returns null if the peer did not grant this access.
  [[nodiscard]] std::byte* Find(const RemoteAddress& remote, size_t size, Access needed) const {
    if (remote.region >= regions_.size()) return nullptr;
    const RemoteRegion& region = regions_[remote.region];
    if (region.access < needed) return nullptr;
    if (remote.offset > region.size || size > region.size - remote.offset) return nullptr;
    return places_[remote.region] + remote.offset;
  }

 private:
  std::vector<RemoteRegion> regions_;
  std::vector<std::byte*> places_;                  // By region: the place where it is mapped.
  std::vector<std::shared_ptr<Mapping>> mappings_;  // By region.
};

}  // namespace erda::fabric::shm
