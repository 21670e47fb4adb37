// The work of a get over plain memory: the client's engine gets a value whose location it knows, by one memcpy.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddMemoryGets(Suite& suite);

}  // namespace erda::micro
