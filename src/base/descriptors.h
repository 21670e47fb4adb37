// Counts the descriptors that this process has open.
#pragma once

#include <dirent.h>

#include <cstdint>

namespace erda {

// Returns 0 if the number is unknown.
[[nodiscard]] inline uint64_t CountDescriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  ::closedir(folder);
  constexpr uint64_t kOthers = 3;  // ".", "..", and the folder itself.
  return entries > kOthers ? entries - kOthers : 0;
}

}  // namespace erda
