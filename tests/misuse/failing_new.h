// An operator new that can fail, in place of the program's own.
#pragma once

#include <cstdint>

namespace erda {

// Allocations of this thread that succeed before the next fails; negative: all succeed.
extern thread_local int64_t left;
// One fails, and then all succeed; else all fail until `left` is set.
extern thread_local bool fails_once;

}  // namespace erda
