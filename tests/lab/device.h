// DAX devices, which nobody can delete as one does a file.
#pragma once

#include <string>

namespace erda {

// In bytes, as text; empty if it cannot be found out.
[[nodiscard]] std::string DeviceSize(const std::string& path);

// So that the next server makes a new pool there. False, with errno, if it cannot.
[[nodiscard]] bool WipeDevice(const std::string& path);

}  // namespace erda
