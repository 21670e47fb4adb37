// ib_read_lat of the perftest package: what others measure on the same device, to see that the floor is honest.
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

// The device that has this numeric address, and the index of its RoCE v2 GID. `sysfs`: /sys/class/infiniband.
[[nodiscard]] std::optional<RdmaDevice> FindDevice(const std::filesystem::path& sysfs, const std::string& host);

// t_typical in the output of ib_read_lat.
[[nodiscard]] std::optional<double> TypicalIn(const std::string& output);

// Runs both ends of ib_read_lat on this machine, 64 bytes; its typical latency in microseconds.
Result<double> RunIbReadLat(const RdmaDevice& device, const std::string& host);

}  // namespace erda::floors
