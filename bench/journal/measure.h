// The measurement of erda-bench journal. The main thread of the program calls it.
#pragma once

#include <string>

#include "bench/journal/report.h"
#include "erda/status.h"

namespace erda::journal_bench {

// Starts `program`, this program or another copy of it, as the server. All figures have their turn in each round.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::journal_bench
