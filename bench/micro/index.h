// The works of a shard's index (index/index.h): finding a key, and inserting one.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddIndexes(Suite& suite);

}  // namespace erda::micro
