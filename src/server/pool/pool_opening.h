// Opens the pool that the options of a server name, with a journal or without one, and makes it if it does not exist.
//
// Owns nothing. The thread that opens the server calls it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "erda/server.h"
#include "journal/journaled_pool.h"
#include "server/pool/formatted_pool.h"

namespace erda::server {

struct OpenedPool {
  std::unique_ptr<FormattedPool> pool;
  journal::JournaledPool* journaled = nullptr;  // The same pool if it has a journal. Null if it has none.
};

// Makes a pool with a journal of `size` bytes, or 1 GiB if it is 0, and opens nothing. An error leaves neither file.
Status MakeJournaledPool(const nvm::PoolOptions& options, const format::GeometryWish& wish, const std::string& journal,
                         uint64_t size, journal::FileDiskOptions disk);

// `failed` hears once that the disk of the journal has failed. `archive_event` hears lines about the archive. Any
// thread calls them, as long as the pool exists.
Result<OpenedPool> OpenPoolOf(const ServerOptions& options, std::function<void(const Status&)> failed,
                              std::function<void(const std::string&)> archive_event);

}  // namespace erda::server
