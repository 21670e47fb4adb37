// The work of the hash of a key (base/hash.h).
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddKeyHashes(Suite& suite);

}  // namespace erda::micro
