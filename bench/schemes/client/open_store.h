// A connection to the store that is to be measured: Erda, or a scheme that it is compared with.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

inline constexpr std::string_view kErda = "erda";

// scheme: "erda", "redo" or "raw". The server must be of this scheme.
Result<std::unique_ptr<NvmStore>> OpenStore(std::string_view scheme, const std::string& address,
                                            const ClientOptions& options);

}  // namespace erda::bench
