// The measurement, with one server and one pool: first what is copied at each share of live data, then latencies.
//
// Both states have the same pool, the same live data and the same load: one thread does the measured operations one at
// a time, and beside them puts of other keys at a steady rate. What differs is how full the log is. Idle: all dead
// space was made free before, so that the cleaner is not due. Cleaning: the log is full, so that it is. Slices of both
// alternate.
#pragma once

#include <string>

#include "bench/cleaning/report.h"
#include "bench/cleaning/settings.h"
#include "erda/status.h"

namespace erda::cleaning {

// Starts `program`, this one or another copy of it, as the server.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::cleaning
