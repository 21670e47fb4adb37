// A client and a shard over the shm fabric, both driven by one thread. So a count of instructions has both sides, and
// does not depend on the moments at which two threads meet.
//
// Owns the pool, the shard with its port, and the client. No cleaner runs. The thread that made it calls it.
#pragma once

#include <memory>
#include <optional>

#include "base/server_time.h"
#include "bench/floors/temporary_folder.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "server/pool/formatted_pool.h"
#include "server/sessions/port.h"
#include "server/shard.h"

namespace erda::micro {

class ShmStore {
 public:
  // cache_entries: the number of keys whose locations the client remembers.
  static Result<std::unique_ptr<ShmStore>> Make(uint32_t cache_entries);
  ShmStore(const ShmStore&) = delete;
  ShmStore& operator=(const ShmStore&) = delete;
  ~ShmStore();

  [[nodiscard]] Client& client() { return *client_; }
  // The server's side of an operation: one Poll of the shard. Not inlined: tools/micro finds the instructions of this
  // side by the function's name.
  [[gnu::noinline]] void Serve();

 private:
  explicit ShmStore(std::unique_ptr<server::FormattedPool> pool);
  Status Open();
  void BeIdle();
  Status Connect(uint32_t cache_entries);
  void Admit();

  const floors::TemporaryFolder folder_;
  const std::unique_ptr<server::FormattedPool> pool_;
  const ServerTime time_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::Listener> listener_;
  server::PoolRegions pool_regions_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<server::Shard> shard_;
  std::unique_ptr<Client> client_;
};

}  // namespace erda::micro
