// The works of the copies between private and shared memory (fabric/shm/copy.h), by the number of bytes.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddCopies(Suite& suite);

}  // namespace erda::micro
