// What a server did between two readings of what it says of itself, as the lines that erda-cli top shows.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "erda/activity.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::cli {

struct Reading {
  std::chrono::steady_clock::time_point at;
  std::map<std::string, std::string> info;
  Activity activity;
};

Result<Reading> Read(Client& client);

// Rates, and the times that took place in between. Of `before` nothing is taken if there is none, or if another server
// had the address then: so the lines are of all that was done since the server's start, and say so.
[[nodiscard]] std::vector<std::string> LinesOf(const Reading* before, const Reading& now);

}  // namespace erda::cli
