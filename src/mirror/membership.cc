#include "mirror/membership.h"

namespace erda::mirror {

Status Membership::Join(uint64_t id) {
  if (Counts(id)) return {};
  const std::lock_guard lock(mutex_);
  const uint64_t counts = counts_.load(std::memory_order_relaxed);
  if (counts == id) return {};
  if (counts != 0) return {Code::kConflict, "another mirror counts"};
  if (keep_) {
    if (auto status = keep_(id); !status.ok()) return status;
  }
  counts_.store(id, std::memory_order_relaxed);
  return {};
}

void Membership::GiveUp(uint64_t id) {
  if (keep_) return;
  const std::lock_guard lock(mutex_);
  if (Counts(id)) counts_.store(0, std::memory_order_relaxed);
}

}  // namespace erda::mirror
