#include "server/cleaning/waiting_puts.h"

namespace erda::server {

bool WaitingPuts::Expects(uint32_t head, bool again) {
  const bool lacks_slot = head != kAnyHead && versions_.log().regions().slots().IsCrowded(head);
  const Room room = lacks_slot ? Room::kHeadSlot : Room::kRegion;
  if (wait_.IsHopeless(room, versions_.CountRegions().changes()) && !resorts_.TakePassedDeadline()) return false;
  if (!wait_.any()) {
    resorts_.Begin();
    patience_.Begin(again);
  }
  wait_.Begin(room);
  return true;
}

}  // namespace erda::server
