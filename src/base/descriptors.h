// Counts the descriptors that this process has open.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <mutex>

namespace erda {

// Returns 0 if the number is unknown. Any thread may call it. One thread counts at a time, since the open folder of a
// second one would be counted.
[[nodiscard]] inline uint64_t CountDescriptors() {
  static std::mutex counting;
  const std::scoped_lock lock(counting);
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  ::closedir(folder);
  constexpr uint64_t kOthers = 3;  // ".", "..", and the folder itself.
  return entries > kOthers ? entries - kOthers : 0;
}

}  // namespace erda
