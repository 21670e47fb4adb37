// Checks the options of a client, and converts them for its engine. Owns nothing. Any thread may call it.
#pragma once

#include "client/engine_options.h"
#include "erda/client.h"

namespace erda::client {

// Returns ok if each option is within its bounds, and the options fit together.
[[nodiscard]] Status CheckOptions(const ClientOptions& options);
// Returns the engine's options. The engine gets a new id. It asks for the token each time that a server demands a
// proof. Requires: the options were checked.
[[nodiscard]] EngineOptions EngineOptionsOf(ClientOptions options);

}  // namespace erda::client
