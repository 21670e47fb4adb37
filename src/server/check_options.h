// Checks a server's options against their bounds. Any thread may call it.
#pragma once

#include "erda/server.h"

namespace erda::server {

// Both return kInvalidArgument for the first option that is out of its bounds. The message names the option.
[[nodiscard]] Status CheckOptions(const ServerOptions& options);
// Checks the options that Server::Reload can change.
[[nodiscard]] Status CheckLimits(const ServerLimits& limits);

}  // namespace erda::server
