// The works of an object (format/object.h): making its header and checksums, and verifying it.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddObjects(Suite& suite);

}  // namespace erda::micro
