// Which run of this machine's kernel this is.
#pragma once

#include <array>
#include <cstdint>

namespace erda {

// The 16 bytes of /proc/sys/kernel/random/boot_id; zeroes if it cannot be read.
[[nodiscard]] std::array<uint8_t, 16> BootOfMachine();

}  // namespace erda
