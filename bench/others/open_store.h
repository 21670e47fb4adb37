// The store that an address names: Erda's client, or one of the systems that Erda is measured beside.
#pragma once

#include <memory>
#include <string_view>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// "redis:/path/to/socket" and "memcached:/path/to/socket" are theirs, if their client libraries were there when this
// was built; anything else is Erda's. Of the options, theirs heed queue_depth and timeout.
[[nodiscard]] Result<std::unique_ptr<Store>> OpenStore(std::string_view address, const ClientOptions& options);

}  // namespace erda::bench
