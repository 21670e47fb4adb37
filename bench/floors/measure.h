// The measurement: both sides, in short rounds, so that what disturbs one disturbs the other as well.
#pragma once

#include <string>

#include "bench/floors/report.h"
#include "bench/floors/settings.h"
#include "erda/status.h"

namespace erda::floors {

// Starts `program`, this one or another copy of it, as the server's side.
Result<Report> Measure(const Settings& settings, const std::string& program);

}  // namespace erda::floors
