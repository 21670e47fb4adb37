// DAX devices, which nobody can delete as one does a file.
#pragma once

#include <string>

namespace erda {

// So that the next server makes a new pool there. False, with errno, if it cannot.
[[nodiscard]] bool WipeDevice(const std::string& path);

}  // namespace erda
