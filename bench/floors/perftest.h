// Runs ib_read_lat of the perftest package on the same device. It shows whether the floor is honest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "erda/status.h"

namespace erda::floors {

struct RdmaDevice {
  std::string name;
  int gid_index = 0;
};

// Returns the device that has this numeric address, and the index of its RoCE v2 GID. `sysfs` is /sys/class/infiniband.
[[nodiscard]] std::optional<RdmaDevice> FindDevice(const std::filesystem::path& sysfs, const std::string& host);

// Returns t_typical from the output of ib_read_lat.
[[nodiscard]] std::optional<double> TypicalIn(const std::string& output);

// Runs both ends of ib_read_lat on this machine, with 64 bytes. Returns its typical latency in microseconds.
Result<double> RunIbReadLat(const RdmaDevice& device, const std::string& host);

}  // namespace erda::floors
