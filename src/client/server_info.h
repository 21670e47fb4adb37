// What the shards' control blocks say of a server, for people and for metrics. Owns nothing. REQUIRES of each call: the
// control blocks were read (Connections::BeginReadControls), and all links are up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/connections.h"
#include "erda/client.h"

namespace erda::client {

// Names and values, as Client::ServerInfo returns them.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ServerInfoOf(const Connections& connections);
// The sum of what all shards count.
[[nodiscard]] Activity ActivityOf(const Connections& connections);

}  // namespace erda::client
