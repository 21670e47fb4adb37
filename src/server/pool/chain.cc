#include "server/pool/chain.h"

namespace erda::server {

using format::EntryWord;
using format::ObjectState;
using format::ObjectView;

format::LogAddress Chain::Previous(uint32_t head, const ObjectView& view) const {
  const Address previous(view.header.previous);
  const ObjectView older = log_.InspectHeader(head, previous);
  const bool same_key = older.state != ObjectState::kNothing && older.key == view.key;
  return same_key && older.header.version < view.header.version ? previous : format::kNoAddress;
}

uint64_t Chain::VersionAt(uint32_t head, Address address) const {
  const ObjectView view = log_.InspectHeader(head, address);
  return view.state == ObjectState::kNothing ? 0 : view.header.version;
}

bool Chain::FlushIfWhole(uint32_t head, Address address) {
  const ObjectView view = log_.Inspect(head, address);
  if (view.state != ObjectState::kWhole) return false;
  if (!Planted(Flaw::kSettledNotFlushed)) nvm_.Flush(log_.OffsetOf(head, address), SpaceOf(view.header));
  return true;
}

bool Chain::MakePersistentIfWhole(uint32_t head, Address address) {
  const bool whole = FlushIfWhole(head, address);
  if (whole) nvm_.Fence();
  return whole;
}

// (I2) The object is persistent already. If only the settled bit is new, the entry is persistent, too. Otherwise the
// shard first makes the entry persistent without the bit. The reason: a reader that sees the bit may return the
// version, so a power cut must not undo it. The bit itself may get lost: recovery verifies versions that are not
// settled.
void Chain::StoreSettled(Slot slot, EntryWord word) {
  if (index_.WordAt(slot).Unsettled() != word.Unsettled()) index_.StoreWord(slot, word.Unsettled());
  index_.StoreWordLazily(slot, word.Settled());
}

void Chain::TakeBack(Slot slot, const Before& before) {
  const EntryWord word = index_.WordAt(slot);
  if (before.whole_bytes != 0) {
    MakePersistent(log_.HeadOf(index_.At(slot)), before);
    StoreSettled(slot, word.TakenBackTo(before.address, true));
  } else if (!before.address.none()) {
    index_.StoreWord(slot, word.TakenBackTo(before.address, false));
  } else if (word.old_address().none()) {
    index_.Free(slot);
  } else {
    // The shard changes address and settled bit in one store. If the bit were missing for a moment, readers would look
    // for an older version. After a power cut before the store is persistent, recovery comes to the same entry.
    index_.StoreWord(slot, word.TakenBackToOld());
  }
}

}  // namespace erda::server
