// The boot id: the kernel's name for the time between two starts of the machine. Owns nothing. Any thread may call it.
#pragma once

#include <array>
#include <cstdint>

namespace erda {

// Returns the 16 bytes of /proc/sys/kernel/random/boot_id. Returns zeroes if it cannot be read.
[[nodiscard]] std::array<uint8_t, 16> BootOfMachine();

}  // namespace erda
