// Simulates a kernel that has no room for a byte: doorbells of this program fail with ENOBUFS.
#pragma once

#include <atomic>

namespace erda::fabric {

// The number of doorbells that fail from now on.
extern std::atomic<int> doorbells_to_fail;

}  // namespace erda::fabric
