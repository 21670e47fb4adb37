#include "lab/device.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"

namespace erda {

std::string DeviceSize(const std::string& path) {
  std::ifstream file("/sys/bus/dax/devices/" + std::filesystem::path(path).filename().string() + "/size");
  std::string size;
  file >> size;
  return size;
}

bool WipeDevice(const std::string& path) {
  constexpr size_t kBytes = size_t{2} << 20;  // The least that a device maps.
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return false;
  void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return false;
  std::memset(at, 0, kBytes);
  ::munmap(at, kBytes);
  return true;
}

}  // namespace erda
