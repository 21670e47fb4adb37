// An operator new that can fail. It replaces the program's operator new.
#pragma once

#include <cstdint>

namespace erda {

// The number of allocations of this thread that succeed before the next one fails. Negative: all succeed.
extern thread_local int64_t left;
// If true, one allocation fails, and then all succeed. If false, all fail until `left` is set.
extern thread_local bool fails_once;

}  // namespace erda
