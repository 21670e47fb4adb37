#include "server/versions/mending.h"

#include <algorithm>
#include <utility>

#include "server/versions/find_key.h"

namespace erda::server {

using format::IndexEntry;
using format::ObjectView;

bool Mending::Mend(AllPublished /*proof*/, index::Slot first, uint64_t slots) {
  bool changed = false;
  for (index::Slot slot = first; slot < std::min(first + slots, index_.census().slots_counted()); ++slot) {
    index_.ReadAhead(slot);
    changed |= index_.mender().Mend(slot) != index::Mender::Mended::kFits;
    changed |= !index_.mender().rest_is_due() && Settle(slot);
  }
  return changed;
}

// Does the same as the next put of the key would do. This also repairs a settled bit that flipped before the slot was
// counted.
bool Mending::Settle(index::Slot slot) {
  const IndexEntry entry = index_.At(slot);
  if (entry.word == 0 || entry.entry_word().settled()) return false;
  const ObjectView view = log_.InspectHeader(log_.HeadOf(entry), entry.entry_word().new_address());
  if (!IsVersionOf(index_, slot, view)) return false;
  if (taking_back_.FindWriter(slot, view.header.key_hash) != InFlight::kNone) return false;
  settling_.SettleCurrent(slot, view.header.key_hash);
  return index_.WordAt(slot).settled();
}

void Mending::EndRest() {
  const index::Mender::RestChange change = index_.mender().CheckRest();
  if (change.undone) {
    index_.mender().Undo(change.slot, *change.undone);
  } else {
    changed_at_rest_ = change.changed;
  }
}

// A split may have taken the entry away since. Then its key is unknown here.
void Mending::TellKept(const std::function<void(std::string_view key)>& tell) {
  if (std::exchange(changed_at_rest_, false)) tell({});
  for (const index::Slot slot : index_.mender().TakeKept()) {
    const IndexEntry entry = index_.At(slot);
    const ObjectView view = log_.InspectHeader(log_.HeadOf(entry), entry.entry_word().new_address());
    tell(entry.word != 0 && IsVersionOf(index_, slot, view) ? view.key : std::string_view());
  }
  index_.mender().EndNews();
}

}  // namespace erda::server
