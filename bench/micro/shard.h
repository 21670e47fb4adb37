// The work of a shard's put over memory: the shard writes a value into its log and publishes it, without a request.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddShards(Suite& suite);

}  // namespace erda::micro
