// What the options of a client mean to its engine. Owns nothing.
#pragma once

#include "client/engine_options.h"
#include "erda/client.h"

namespace erda::client {

// Ok if each option is within its bounds, and if they fit together.
[[nodiscard]] Status CheckOptions(const ClientOptions& options);
// Of options that are checked. The engine has an id of its own, and asks for the token each time that a server does.
[[nodiscard]] EngineOptions EngineOptionsOf(ClientOptions options);

}  // namespace erda::client
