// The works of whole operations over the shm fabric, from the call of the client to its result. A put has both sides,
// the client's and the shard's. A get has only the client's side.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddShmOperations(Suite& suite);

}  // namespace erda::micro
