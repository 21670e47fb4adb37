#include "server/cleaner/expiry_look.h"

#include <algorithm>

namespace erda::server {

namespace {

// Empty slots cost little: a look passes up to this many slots.
constexpr uint64_t kSlotsPerLook = 64;

}  // namespace

// Splits move entries only towards the end of the index. So a round that ends at the end of the grown index meets every
// entry.
ExpiryLook::Seen ExpiryLook::Look(index::Slot* next, uint64_t looks) {
  Seen seen;
  (void)index_.Refresh();
  const index::Slot end = std::min(*next + looks * kSlotsPerLook, index_.size());
  for (; *next < end && looks > 0 && HasRoomForBatch(proposals_); ++*next, ++seen.slots) {
    const format::IndexEntry entry = index_.At(*next);
    if (entry.word == 0) continue;
    --looks;
    LookAt(entry, &seen);
  }
  return seen;
}

void ExpiryLook::LookAt(const format::IndexEntry& entry, Seen* seen) {
  if (!entry.entry_word().settled()) {
    seen->unsettled = true;
    return;
  }
  const auto named = objects_.Find(entry);
  const auto view = named ? format::InspectHeader(named->place, named->bytes) : format::ObjectView();
  if (view.state == format::ObjectState::kNothing) seen->unsettled = true;  // damage, or the entry has just changed
  if (view.state == format::ObjectState::kNothing || view.deadline == 0) return;
  ++seen->expiring;
  if (!time_.Passed(view.deadline)) {
    seen->next_deadline = std::min(seen->next_deadline, view.deadline);
    return;
  }
  ++seen->expired;
  (void)proposals_.Push(VersionExpired{
      .head = objects_.HeadOf(entry), .key_hash = view.header.key_hash, .from = entry.entry_word().new_address()});
}

}  // namespace erda::server
