#include "base/bytes.h"

#include <isa-l/mem_routines.h>

namespace erda {

bool IsZero(std::span<const std::byte> bytes) {
  return ::isal_zero_detect(const_cast<std::byte*>(bytes.data()), bytes.size()) == 0;
}

}  // namespace erda
