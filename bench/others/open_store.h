// Opens the store that an address names: Erda's client, or one of the systems that are measured beside Erda.
#pragma once

#include <memory>
#include <string_view>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// These addresses name the other systems, if their client libraries were installed at build time:
//   redis:/path/to/socket, memcached:/path/to/socket   servers
//   lmdb:FILE, tkrzw:FILE, rocksdb:FOLDER              libraries; options of theirs may follow, after commas
// Any other address is Erda's. Of the options, the servers use only queue_depth and timeout, and the libraries only
// queue_depth. All stores of a process that name one file must have the same address.
[[nodiscard]] Result<std::unique_ptr<Store>> OpenStore(std::string_view address, const ClientOptions& options);

}  // namespace erda::bench
