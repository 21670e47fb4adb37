#include "server/cleaner/scrubber.h"

namespace erda::server {

namespace {

// Calls of Scrub for each proposal to mend, which makes one a second. The proposal wakes a shard that sleeps.
constexpr uint64_t kScrubsPerMending = 10;

}  // namespace

// Reads as a client does: the entry, the head slot, the object. If the object is not whole, reads the head slot again
// here, and the entry in Scrub. A region that is emptied meanwhile keeps its bytes: this thread alone zeroes it.
bool Scrubber::IsDamaged(const format::IndexEntry& entry, uint64_t* bytes) const {
  const auto named = objects_.Find(entry);
  if (!named) return true;
  const format::ObjectView view = format::InspectObject(named->place, named->bytes);
  *bytes = view.state == format::ObjectState::kNothing ? format::kGranuleBytes : SpaceOf(view.header);
  const bool whole = view.state == format::ObjectState::kWhole &&
                     format::EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag();
  return !whole && named->IsStillLinked();
}

void Scrubber::Scrub(uint64_t bytes) {
  (void)index_.Refresh();
  if (++scrubs_ % kScrubsPerMending == 0 && HasRoomForBatch(proposals_)) (void)proposals_.Push(MendingDue{});
  uint64_t scrubbed = 0;
  // A call also passes empty slots, but no more than fit into this many bytes of the index.
  for (uint64_t slots = 0; scrubbed < bytes && slots < bytes / sizeof(format::IndexEntry); ++slots) {
    const index::Slot slot = next_;
    next_ = next_ + 1 < index_.size() ? next_ + 1 : 0;
    const format::IndexEntry entry = index_.At(slot);
    if (entry.word == 0 || !entry.entry_word().settled()) continue;
    uint64_t of_object = format::kGranuleBytes;
    const bool damaged = IsDamaged(entry, &of_object);
    scrubbed += of_object;
    const format::IndexEntry now = index_.At(slot);
    if (!damaged || now.word != entry.word || objects_.HeadOf(now) != objects_.HeadOf(entry)) continue;
    if (!HasRoomForBatch(proposals_)) break;
    (void)proposals_.Push(
        DamageFound{.head = objects_.HeadOf(entry), .from = entry.entry_word().new_address(), .index_slot = slot});
  }
  counters_.Add(format::Counter::kScrubBytes, scrubbed);
}

}  // namespace erda::server
