// The measurement of erda-bench paths. The main thread of the program calls it.
#pragma once

#include <string>

#include "bench/paths/report.h"
#include "erda/status.h"

namespace erda::paths {

// Starts `program`, this program or another copy of it, as the server. All paths and sizes have their turn in each
// round.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::paths
