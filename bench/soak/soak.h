// The soak test: several clients overwrite a nearly full store many times over, and verify whatever they read.
//
// Each key is written by one client, and read by all. A get must find a value that was put as a whole, by a write that
// had begun when the get ended, and that is no older than what was acknowledged before the get began.
#pragma once

#include <cstdint>
#include <string>

#include "bench/soak/settings.h"
#include "erda/status.h"

namespace erda::soak {

struct Report {
  uint64_t keys = 0;
  uint64_t puts = 0;
  uint64_t deletes = 0;
  uint64_t gets = 0;
  uint64_t bytes = 0;  // written to the log by puts and deletes, the load included
  uint64_t regions_cleaned = 0;
  uint64_t bytes_copied = 0;
  uint64_t puts_delayed = 0;
  double seconds = 0;  // of all
};

// Starts `program`, this one or another copy of it, as the server, and erda-inspect beside it at the end.
Result<Report> Run(const Settings& settings, const std::string& program);
[[nodiscard]] std::string ToText(const Settings& settings, const Report& report);

}  // namespace erda::soak
