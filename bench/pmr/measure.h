// Runs the measurement of `erda-bench pmr`.
#pragma once

#include "bench/pmr/report.h"
#include "erda/status.h"

namespace erda::pmr_bench {

// Both ends are threads of this process.
Result<Report> Measure(const Settings& settings);

}  // namespace erda::pmr_bench
