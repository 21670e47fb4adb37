// The soak test: several clients overwrite a nearly full store many times over, and verify all that they read.
//
// One client writes a key, and all clients read it. A get must find a value that one write put as a whole. That write
// must have begun before the get ended. It must not be older than the last write that was acknowledged before the get
// began.
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
  uint64_t bytes = 0;  // Written to the log by puts and deletes, including the load.
  uint64_t regions_cleaned = 0;
  uint64_t bytes_copied = 0;
  uint64_t puts_delayed = 0;
  double seconds = 0;  // Of the whole test.
};

// Starts `program`, this program or another copy of it, as the server, and erda-inspect beside it at the end.
Result<Report> Run(const Settings& settings, const std::string& program);
[[nodiscard]] std::string ToText(const Settings& settings, const Report& report);

}  // namespace erda::soak
