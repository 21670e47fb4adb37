// The floors measurement. Both sides run in short rounds, so that a disturbance hits both.
#pragma once

#include <string>

#include "bench/floors/report.h"
#include "bench/floors/settings.h"
#include "erda/status.h"

namespace erda::floors {

// Starts `program`, this program or another copy of it, as the server's side.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::floors
