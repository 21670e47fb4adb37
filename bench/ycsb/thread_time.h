// The processor time of another process' threads.
#pragma once

#include <string_view>

namespace erda::bench {

// Seconds that the threads whose names begin so have run.
[[nodiscard]] double ThreadSeconds(int pid, std::string_view name_begin);

}  // namespace erda::bench
