// The work of the checksum (base/crc32c.h), by the number of bytes.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddChecksums(Suite& suite);

}  // namespace erda::micro
