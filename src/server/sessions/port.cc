#include "server/sessions/port.h"

#include <algorithm>

namespace erda::server {

using fabric::Access;

Result<PoolRegions> PoolRegions::Register(fabric::Fabric& fabric, const nvm::Pool& pool, PoolWrites writes) {
  // A NIC stores into pages that were pinned when the pool was registered. Once the kernel has written such a page to
  // the disk, the page counts as clean. A later store of the NIC does not change that. So syncs would miss the store,
  // and the pool would be marked as closed cleanly without it. Therefore clients stage there, and the shard's CPU
  // stores. A device with on-demand paging would see the store. But the fabric pins pages where it can, windows need
  // pinned ones, and the server cannot tell which kind it got.
  if (pool.written_back() && fabric.capabilities().nic_writes) writes = PoolWrites::kNobody;
  // A device that refuses to register this memory with windows may do it without them. Then all clients stage.
  const bool windows = writes == PoolWrites::kSameUser && fabric.capabilities().memory_windows;
  auto readable = fabric.Register(pool.view(), windows ? Access::kRemoteReadWindows : Access::kRemoteRead);
  if (windows && !readable.ok()) readable = fabric.Register(pool.view(), Access::kRemoteRead);
  if (!readable.ok()) return readable.status();
  // Registers the pool for writes only if a client can get it. A fabric that knows no users cannot tell that a client
  // is the server's own user.
  const bool is_somebodys =
      writes == PoolWrites::kEverybody || (writes == PoolWrites::kSameUser && fabric.capabilities().knows_users);
  if (!is_somebodys) return PoolRegions{*std::move(readable), nullptr};
  auto writable = fabric.Register(pool.view(), Access::kRemoteReadWrite);
  if (!writable.ok()) return writable.status();
  return PoolRegions{*std::move(readable), *std::move(writable)};
}

// A device is one fabric, with its port for clients that may only read. The statistics have room for a few fabrics. The
// last of these counts all others, too.
std::vector<size_t> NameFabrics(std::span<const Port> ports, ActivityCounts& activity) {
  std::vector<size_t> fabrics;
  for (size_t port = 0; port < ports.size(); ++port) {
    const auto of = std::ranges::find(ports, std::optional(port), &Port::for_readers);
    const size_t fabric = of != ports.end() ? static_cast<size_t>(of - ports.begin()) : port;
    fabrics.push_back(std::min(fabric, ActivityCounts::kFabrics - 1));
  }
  for (size_t port = ports.size(); port-- > 0;) {
    if (fabrics[port] != port) continue;
    activity.NameFabric(port, ports[port].fabric.scheme(), ports[port].fabric.capabilities().device);
  }
  return fabrics;
}

}  // namespace erda::server
