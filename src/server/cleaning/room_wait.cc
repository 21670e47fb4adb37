#include "server/cleaning/room_wait.h"

namespace erda::server {

void RoomWait::Begin(Room room) {
  if (!any()) merges_ = 0;
  Of(room) = {.waits = true};
}

void RoomWait::EndAll() {
  region_.waits = head_slot_.waits = false;
  merges_ = 0;
  ++rooms_;
}

void RoomWait::GiveUp(Room room, uint64_t changes) {
  if (!Waits(room)) return;
  Of(room) = {.waits = false, .hopeless = true, .changes = changes};
  ++rooms_;
}

}  // namespace erda::server
