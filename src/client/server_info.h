// Reports what the shards' control blocks contain, for people and for metrics. Owns nothing. Each call REQUIRES: the
// control blocks were read (Connections::BeginReadControls), and all links are up. Only the client's thread calls them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/connections.h"
#include "erda/client.h"

namespace erda::client {

// Returns names and values, as Client::ServerInfo does.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ServerInfoOf(const Connections& connections);
// Returns the sum of the activity of all shards.
[[nodiscard]] Activity ActivityOf(const Connections& connections);

}  // namespace erda::client
