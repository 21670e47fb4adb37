#include "server/versions/moving.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "server/versions/find_key.h"

namespace erda::server {

using format::Counter;
using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::ObjectHeader;
using format::ObjectState;
using format::ObjectView;

bool Moving::Move(AllPublished /*proof*/, uint64_t key_hash, Address from, Address to) {
  if (settling_.holds_later()) TakeCopy(geometry_.HeadOf(key_hash), to);
  const auto slot = index_.mender().FindMended(key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    if (Planted(Flaw::kMovesUnchecked)) return true;
    if (Planted(Flaw::kMovesUnsettled) && entry.entry_word().new_address() == from) return true;
    return entry.entry_word().NamesSettled(from);
  });
  if (!slot) return false;
  const EntryWord word = index_.WordAt(*slot);
  const EntryWord moved = Planted(Flaw::kMovesUnchecked) ? word.TakenBackTo(to, true) : word.Moved(from, to);
  index_.StoreWordLazily(*slot, moved);
  return true;
}

// The cleaner's writer is not in the stream. All copies go there, also those that no entry will name: a walk of the log
// comes from one object to the next.
void Moving::TakeCopy(uint32_t head, Address at) {
  const ObjectView view = log_.InspectHeader(head, at);
  if (view.state == ObjectState::kNothing || Planted(Flaw::kCopyNotTaken)) return;
  nvm_.Flush(log_.OffsetOf(head, at), SpaceOf(view.header));
  if (!Planted(Flaw::kCopyUnfenced))
    nvm_.Fence();  // The mirror has the copy before the entry that names it. Here the cleaner has fenced it.
}

// No object of the key is there, so entry and reader know only that the value is damaged. They know the same of any
// place where an object never is.
bool Moving::SetAside(AllPublished /*proof*/, Slot slot, uint32_t head, uint32_t region_slot) {
  const IndexEntry entry = index_.At(slot);
  if (entry.word == 0 || log_.HeadOf(entry) != head) return false;
  const auto leads_there = [&](Address address) { return !address.none() && geometry_.SlotOf(address) == region_slot; };
  const Address newest = entry.entry_word().new_address();
  if (!entry.entry_word().settled() && leads_there(newest)) {
    const ObjectView view = log_.InspectHeader(head, newest);
    if (IsVersionOf(index_, slot, view)) {
      settling_.SettleCurrent(slot, view.header.key_hash);
      const bool waits =
          settling_.holds_later() && taking_back_.FindWriter(slot, view.header.key_hash) != InFlight::kNone;
      if (!index_.WordAt(slot).settled() && !waits) taking_back_.TakeBackAbandoned(slot, view.header.key_hash);
      return true;
    }
    index_.StoreWordLazily(slot, entry.entry_word().Settled());
  }
  const EntryWord word = index_.WordAt(slot);
  for (const Address address : {word.new_address(), word.needed_old()}) {
    if (!leads_there(address) || !word.NamesSettled(address)) continue;
    if (!IsVersionOf(index_, slot, log_.InspectHeader(head, address))) StoreAside(slot, head, address);
  }
  return false;
}

void Moving::SetAside(AllPublished /*proof*/, uint64_t key_hash, uint32_t head, Address from) {
  const auto slot = index_.mender().FindMended(
      key_hash, [&](Slot /*slot*/, const IndexEntry& entry) { return entry.entry_word().NamesSettled(from); });
  if (slot) StoreAside(*slot, head, from);
}

void Moving::StoreAside(Slot slot, uint32_t head, Address from) {
  const Address aside = log_.PlaceOfNoObject(head);
  if (aside.none() || geometry_.SlotOf(aside) == geometry_.SlotOf(from)) return;
  counters_.Add(Counter::kSetAside);
  index_.StoreWordLazily(slot, index_.WordAt(slot).Moved(from, aside));
}

// A flip at rest looks like damage until it is undone. The scrubber comes again.
std::optional<std::string> Moving::DamagedKey(Slot slot, uint32_t head, Address address) {
  if (index_.mender().rest_is_due()) return std::nullopt;
  (void)index_.mender().Mend(slot);
  const IndexEntry entry = index_.At(slot);
  if (entry.word == 0 || !entry.entry_word().settled() || entry.entry_word().new_address() != address ||
      log_.HeadOf(entry) != head) {
    return std::nullopt;
  }
  const ObjectView view = log_.Inspect(head, address);
  if (view.state != ObjectState::kNothing) {
    const bool same_tag = EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag();
    if (same_tag) return view.state == ObjectState::kWhole ? std::nullopt : std::optional(std::string(view.key));
    // If the tag is damaged, no get finds the key. If the address is damaged, it leads to a key that has another entry.
    return FindKey(index_, log_, view.key, view.header.key_hash).entry ? std::string() : std::string(view.key);
  }
  // The key may be whole even though the header is not. Its hash then has the entry's tag.
  const auto bytes = log_.BytesAt(head, address);
  if (bytes.size() < sizeof(ObjectHeader)) return std::string();
  const auto header = LoadAs<ObjectHeader>(bytes);
  const bool fits =
      header.key_size <= format::kKeyBytesMax && bytes.size() >= format::ChecksumOffset(header.label_size());
  if (!fits) return std::string();
  const std::string_view key = AsString(bytes.subspan(header.key_offset(), header.key_size));
  return CanBeOf(index_, slot, HashKey(key, hash_seed_)) ? std::string(key) : std::string();
}

}  // namespace erda::server
