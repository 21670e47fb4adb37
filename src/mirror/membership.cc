#include "mirror/membership.h"

namespace erda::mirror {

Status Membership::Join(uint64_t id) {
  if (AnyCounts()) return Counts(id) ? Status() : Status(Code::kConflict, "another mirror counts");
  const std::lock_guard lock(mutex_);
  if (!AnyCounts()) {
    if (keep_) {
      if (auto status = keep_(id); !status.ok()) return status;
    }
    counts_.store(id, std::memory_order_release);
  }
  return Counts(id) ? Status() : Status(Code::kConflict, "another mirror counts");
}

void Membership::GiveUp(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (Counts(id)) counts_.store(0, std::memory_order_relaxed);
}

}  // namespace erda::mirror
