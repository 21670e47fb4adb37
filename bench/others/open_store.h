// Opens the store that an address names: Erda's client, or one of the systems that are measured beside Erda.
#pragma once

#include <memory>
#include <string_view>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// "redis:/path/to/socket" and "memcached:/path/to/socket" name the other systems, if their client libraries were
// installed at build time. Any other address is Erda's. The other systems use only queue_depth and timeout of the
// options.
[[nodiscard]] Result<std::unique_ptr<Store>> OpenStore(std::string_view address, const ClientOptions& options);

}  // namespace erda::bench
