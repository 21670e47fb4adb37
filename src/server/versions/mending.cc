#include "server/versions/mending.h"

#include <algorithm>

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
  if (index_.WordAt(slot).settled()) return true;
  return settling_.holds_later() && taking_back_.FindWriter(slot, view.header.key_hash) != InFlight::kNone;
}

// A split may have taken the entry away since. Then its key is unknown here.
void Mending::TellNews(const std::function<void(std::string_view key)>& tell) {
  const index::Mender::News news = index_.mender().TakeNews();
  if (news.changed_at_rest) tell({});
  for (const index::Slot slot : news.accepted) {
    const IndexEntry entry = index_.At(slot);
    const ObjectView view = log_.InspectHeader(log_.HeadOf(entry), entry.entry_word().new_address());
    tell(entry.word != 0 && IsVersionOf(index_, slot, view) ? view.key : std::string_view());
  }
}

}  // namespace erda::server
