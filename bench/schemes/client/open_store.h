// Opens a connection to the store to be measured: Erda, or a scheme with which it is compared.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

inline constexpr std::string_view kErda = "erda";

// `scheme` is "erda", "redo" or "raw". Requires: the server has this scheme.
Result<std::unique_ptr<NvmStore>> OpenStore(std::string_view scheme, const std::string& address,
                                            const ClientOptions& options);

}  // namespace erda::bench
