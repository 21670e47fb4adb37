#include "client/request_slots.h"

namespace erda::client {

void RequestSlots::Reset(uint32_t slots, uint32_t slot_bytes) {
  slot_bytes_ = slot_bytes;
  owners_.assign(slots, kFree);
  free_.clear();
  for (uint32_t slot = slots; slot > 0; --slot) free_.push_back(slot - 1);
}

}  // namespace erda::client
