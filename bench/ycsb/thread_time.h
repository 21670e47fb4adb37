// The processor time of threads of another process.
#pragma once

#include <string_view>

namespace erda::bench {

// Returns the seconds that threads with this beginning of their names have run.
[[nodiscard]] double ThreadSeconds(int pid, std::string_view name_begin);

}  // namespace erda::bench
