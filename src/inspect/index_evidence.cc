#include "inspect/index_evidence.h"

namespace erda::inspect {

using format::EntryMeta;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectKind;
using format::ObjectState;

void IndexEvidence::Read() {
  ReadSlots(geometry_.FirstSlotOffset(bytes_.shard(), 0), geometry_.index_slots, 0);
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(bytes_.shard(), number);
    const auto& run = regions_.Of(region).run;
    if (!run) continue;
    ReadSlots(geometry_.RegionOffset(region), geometry_.run_slots(),
              geometry_.index_slots + *run * geometry_.run_slots());
  }
}

void IndexEvidence::ReadSlots(uint64_t offset, uint64_t slots, uint64_t first_slot) {
  for (uint64_t i = 0; i < slots; ++i) {
    const uint64_t at = offset + i * sizeof(IndexEntry);
    if (at + sizeof(IndexEntry) > bytes_.pool().size()) return;
    const auto entry = LoadAs<IndexEntry>(bytes_.pool().subspan(at, sizeof(IndexEntry)));
    if (entry.word == 0) continue;
    ReadEntry(PlacedEntry::Of(geometry_, first_slot + i, entry));
  }
}

bool IndexEvidence::MayLeadTo(const PlacedEntry& entry, const FoundObject& object) const {
  const auto& header = object.view.header;
  return object.view.state != ObjectState::kNothing && !header.is_chunk() &&
         EntryMeta::TagOf(header.key_hash) == entry.meta.tag() &&
         MayStandIn(geometry_, entry.index_slot, entry.meta.distance(), header.key_hash);
}

void IndexEvidence::ReadEntry(const PlacedEntry& entry) {
  const uint32_t distance = entry.meta.distance();
  const bool near = distance < format::kNeighbourhood;
  if (geometry_.ShardOf(entry.meta.tag()) != bytes_.shard() || (!near && distance != EntryMeta::kFar)) return;
  const FoundObject newest = regions_.Follow(entry.head, entry.word.new_address());
  const bool verifies = MayLeadTo(entry, newest);
  if (verifies && newest.view.state == ObjectState::kWhole) {
    const uint64_t deleted = newest.view.header.is(ObjectKind::kTombstone) ? uint64_t{KnownVersion::kDeleted} : 0;
    keys_.AddNamed(newest, KnownVersion::kNamed | deleted);
    return;
  }
  if (!verifies) lost_.Add(entry.meta.tag(), entry.index_slot, distance);
  if (!entry.word.settled()) {
    if (verifies) keys_.AddInFlight(newest.view.header.key_hash);
    AddOlder(entry, verifies ? newest : FoundObject());
  } else if (verifies) {
    keys_.AddNamed(newest, KnownVersion::kNamed | KnownVersion::kDamaged);
  }
}

void IndexEvidence::AddOlder(const PlacedEntry& entry, const FoundObject& newest) {
  uint64_t version = newest.view.header.version;
  LogAddress at(newest.view.header.previous);
  while (!at.none() && at != entry.word.old_address()) {
    const FoundObject between = regions_.Follow(entry.head, at);
    if (!MayLeadTo(entry, between) || between.view.header.version >= version) break;
    if (between.view.state == ObjectState::kWhole) {
      keys_.AddNamed(between, KnownVersion::kNamed);
      return;
    }
    version = between.view.header.version;
    at = LogAddress(between.view.header.previous);
  }
  const FoundObject old = regions_.Follow(entry.head, entry.word.old_address());
  if (MayLeadTo(entry, old) && old.view.state == ObjectState::kWhole) keys_.AddNamed(old, KnownVersion::kNamed);
}

}  // namespace erda::inspect
