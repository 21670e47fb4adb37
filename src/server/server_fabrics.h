// The fabrics of a server, and the pool's registered memory at each of them.
//
// All addresses of a device share one fabric, so the pool is registered there once. All addresses of shm share one,
// too. A fabric that needs it has a second one beside it, for clients that may only read. Each fabric is a port of
// every shard: first those with addresses, then those for readers.
//
// Owns the fabrics and the registered memory. The thread that opens the server fills it, by Listen, OpenForReaders and
// RegisterPool in this order. REQUIRES: it outlives the shards, and the pool outlives it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "erda/server.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "nvm/pool.h"
#include "server/sessions/port.h"
#include "server/threads.h"

namespace erda::server {

class ServerFabrics {
 public:
  struct Listening {
    std::unique_ptr<fabric::Listener> listener;
    size_t port = 0;  // for clients of this address
  };
  // Listens on the address.
  Result<Listening> Listen(const std::string& address);
  // Ends the list of fabrics with addresses. If the server demands tokens, opens the fabrics for clients that may only
  // read, where the fabrics with addresses need that. Without tokens no client is limited to reading.
  Status OpenForReaders(bool with_tokens);
  // Registers the pool at each fabric. Clients get the right to write as `writes` says.
  Status RegisterPool(const nvm::Pool& pool, PoolWrites writes, FlushChoice flush);

  // Makes a queue for each port of a shard.
  Result<std::vector<std::unique_ptr<fabric::CompletionQueue>>> CreateQueues() const;
  // Returns the ports of the shard that has these queues. REQUIRES: the pool is registered.
  [[nodiscard]] std::vector<Port> PortsOf(ShardThread& thread) const;
  // Returns the fabrics with addresses, as the user sees them. It does not change after RegisterPool.
  [[nodiscard]] const std::vector<ServerFabric>& infos() const { return infos_; }

 private:
  // Returns the port for an address. Opens its fabric if no address before has opened it.
  Result<size_t> PortOf(const std::string& address);

  std::vector<std::shared_ptr<fabric::Fabric>> fabrics_;  // By port.
  std::vector<std::optional<size_t>> for_readers_;  // By port, for each fabric with addresses: its port for readers.
  std::vector<PoolRegions> pool_regions_;           // By port.
  std::vector<format::FlushMethod> flush_methods_;  // By port.
  std::vector<ServerFabric> infos_;
};

}  // namespace erda::server
