#include "inspect/salvage_choice.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace erda::inspect {

using format::ObjectState;
using format::ObjectView;

void SalvageChoice::Run() {
  for (const auto& [at, best] : keys_.best()) {
    if (!best.none()) Choose(best);
  }
  AddUnfinishedKeys();
  AddLostEntries();
  std::sort(chosen_.begin(), chosen_.end(), [](const Chosen& a, const Chosen& b) { return a.offset < b.offset; });
}

void SalvageChoice::Choose(const KnownVersion& best) {
  const uint64_t key_hash = bytes_.HeaderAt(best.offset()).key_hash;
  const std::string_view key = bytes_.KeyAt(best.offset());
  const bool named = best.is(KnownVersion::kNamed);
  const bool recognised = !named && lost_.Recognise(key_hash);
  if (best.is(KnownVersion::kDeleted) || (!named && keys_.HasTombstoneAfter(key_hash, best.number()))) {
    ++losses_.report().deleted;
    return;
  }
  if (keys_.HasUnprovenAfter(key_hash, best.number())) {
    ++losses_.report().doubtful;
    losses_.Add("a newer version is in the log, and the index does not name it: --newest takes it", key, best.offset());
  }
  if (best.is(KnownVersion::kDamaged) || recognised) {
    ChooseOlder(best, recognised);
    return;
  }
  const KnownVersion newer = keys_.UnfinishedAfter(key_hash, best.number());
  if (!named && !newer.none()) {
    ++losses_.report().unfinished;
    losses_.Add("a newer version was never finished, or is damaged; the one before it was written", key,
                newer.offset());
  }
  chosen_.push_back({best.offset(), named});
}

void SalvageChoice::ChooseOlder(const KnownVersion& best, bool recognised) {
  const std::string_view key = bytes_.KeyAt(best.offset());
  const KnownVersion older = recognised ? best : keys_.Before(best);
  if (older.none() || !older_) {
    ++losses_.report().damaged;
    losses_.Add(
        older.none() ? "the value is damaged" : "the newest version is damaged; --older writes the one before it", key,
        best.offset());
    return;
  }
  ++losses_.report().older;
  losses_.Add("the newest version is damaged, and the one before it was written", key, best.offset());
  chosen_.push_back({older.offset(), false});
}

void SalvageChoice::AddUnfinishedKeys() {
  for (const auto& [key_hash, version] : keys_.unfinished()) {
    if (keys_.Knows(key_hash)) continue;
    ++losses_.report().unfinished;
    losses_.Add("its only version was never finished, or is damaged", bytes_.KeyAt(version.offset()), version.offset());
  }
}

void SalvageChoice::AddLostEntries() {
  for (const auto& [tag, entry] : lost_.all()) {
    if (entry.recognised) continue;
    ++losses_.report().damaged;
    losses_.Add(
        "index slot " + std::to_string(entry.index_slot) + " of the index names a version that cannot be read at all",
        std::nullopt, std::nullopt);
  }
}

Status SalvageChoice::TakeAll(const PlacedRegions& regions, const TakeValue& take) {
  SalvageReport& report = losses_.report();
  for (const Chosen& chosen : chosen_) {
    const ObjectView view = regions.ObjectAt(chosen.offset, bytes_.geometry().segment_size);
    if (view.state != ObjectState::kWhole) {  // It was whole when it was chosen.
      ++report.damaged;
      continue;
    }
    if (auto status = take({view.key, view.value, view.deadline, chosen.named}); !status.ok()) return status;
    ++(chosen.named ? report.named : report.unnamed);
    report.bytes += view.key.size() + view.value.size();
  }
  return {};
}

}  // namespace erda::inspect
