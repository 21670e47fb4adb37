#include "bench/micro/hardware_counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/bytes.h"

namespace erda::micro {

namespace {

// Returns the descriptor of a counter of this thread on any processor. group: the descriptor of the group's leader, or
// -1 for the leader itself.
int OpenCounter(uint64_t event, int group) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof(attributes);
  attributes.config = event;
  if (group < 0) attributes.disabled = 1;  // The other counters follow the leader.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_GROUP;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

HardwareCounters::HardwareCounters() {
  instructions_.reset(OpenCounter(PERF_COUNT_HW_INSTRUCTIONS, -1));
  if (instructions_.get() >= 0) cache_misses_.reset(OpenCounter(PERF_COUNT_HW_CACHE_MISSES, instructions_.get()));
  if (cache_misses_.get() < 0) refusal_ = ErrnoStatus("perf_event_open").message();
}

void HardwareCounters::Begin() {
  (void)::ioctl(instructions_.get(), PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
  (void)::ioctl(instructions_.get(), PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

HardwareCounters::Counts HardwareCounters::End() {
  (void)::ioctl(instructions_.get(), PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
  std::array<uint64_t, 3> read{};  // The number of counters, then their values in the order of the group.
  if (::read(instructions_.get(), read.data(), sizeof(read)) != static_cast<ssize_t>(sizeof(read))) return {};
  return {read[1], read[2]};
}

}  // namespace erda::micro
