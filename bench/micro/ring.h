// The works of a ring of the shm fabric (fabric/shm/ring.h): one message from its producer to its consumer.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddRings(Suite& suite);

}  // namespace erda::micro
