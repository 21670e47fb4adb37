// The measurement of erda-bench shortage. The main thread of the program calls it.
#pragma once

#include <string>

#include "bench/shortage/report.h"
#include "erda/status.h"

namespace erda::shortage {

// Starts `program`, this program or another copy of it, as the server, the writer and the busy processes.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::shortage
