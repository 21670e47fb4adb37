// The measurement of erda-bench bytes. The main thread of the program calls it.
#pragma once

#include "bench/bytes/report.h"
#include "erda/status.h"

namespace erda::bytes {

// Starts servers in this process, each with a new pool in memory.
Result<Report> Measure(const Settings& settings);

}  // namespace erda::bytes
