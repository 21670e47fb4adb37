// DAX devices. A file can be deleted, but a DAX device can only be wiped.
#pragma once

#include <string>

namespace erda {

// Returns the size in bytes, as text. Returns an empty text if the kernel does not tell the size.
[[nodiscard]] std::string DeviceSize(const std::string& path);

// Wipes the beginning, so that the next server makes a new pool there. Returns false, with errno, on a failure.
[[nodiscard]] bool WipeDevice(const std::string& path);

}  // namespace erda
