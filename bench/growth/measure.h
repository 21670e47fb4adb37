// The measurement of erda-bench growth. The main thread of the program calls it.
#pragma once

#include <string>

#include "bench/growth/report.h"
#include "erda/status.h"

namespace erda::growth {

// Starts `program`, this program or another copy of it, as the server.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::growth
