// The measurement of erda-bench crowd. The main thread of the program calls it.
#pragma once

#include <string>

#include "bench/crowd/report.h"
#include "erda/status.h"

namespace erda::crowd {

// Starts `program`, this program or another copy of it, as the server.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::crowd
