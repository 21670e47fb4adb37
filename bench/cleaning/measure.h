// The cleaning measurement, with one server and one pool. First it measures the copying at each share of live data,
// then latencies.
//
// Both states have the same pool, the same live data and the same load. One thread does the measured operations one at
// a time, and puts of other keys beside them at a steady rate. Only the fill of the log differs. Idle: all dead space
// was freed before, so cleaning is not due. Cleaning: the log is full, so cleaning is due. Slices of both states
// alternate.
#pragma once

#include <string>

#include "bench/cleaning/report.h"
#include "bench/cleaning/settings.h"
#include "erda/status.h"

namespace erda::cleaning {

// Starts `program`, this program or another copy of it, as the server.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::cleaning
