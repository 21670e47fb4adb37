// The work of a server between two readings of its statistics, as the lines that erda-cli top shows.
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
  std::chrono::system_clock::time_point date;
  std::map<std::string, std::string> info;
  Activity activity;
};

Result<Reading> Read(Client& client);

// Returns the lines of the rates and times between the two readings. If `before` is null, or of another server at the
// same address, the lines count all work since the server's start, and say so.
[[nodiscard]] std::vector<std::string> LinesOf(const Reading* before, const Reading& now);

}  // namespace erda::cli
