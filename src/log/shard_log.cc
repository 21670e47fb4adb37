#include "log/shard_log.h"

#include "base/bytes.h"
#include "base/planted.h"
#include "format/log_address.h"
#include "format/log_layout.h"

namespace erda::log {

using format::EntryWord;
using format::LogAddress;

ShardLog::ShardLog(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control)
    : nvm_(nvm),
      shape_(geometry, shard),
      regions_(nvm, shape_, control),
      segments_(nvm, shape_, regions_),
      objects_(nvm, shape_, regions_.slots(), pool_seed),
      use_(nvm, shape_, regions_.slots(), objects_),
      tails_(nvm, shape_, regions_, segments_),
      copies_(shape_, regions_, segments_) {}

void ShardLog::Close() {
  tails_.SealFull();
  segments_.SettleAll();
  tails_.Close();
}

void ShardLog::OnEntryChanged(uint32_t head, EntryWord before, EntryWord after) {
  if (!shape_.HasHead(head)) return;  // The entry is damaged.
  const LogAddress was[] = {before.new_address(), before.needed_old()};
  const LogAddress is[] = {after.new_address(), after.needed_old()};
  for (const LogAddress address : is) {
    if (address.none() || address == was[0] || address == was[1]) continue;
    use_.CountName(head, address, use_.BytesOf(head, address));
    copies_.OnNamed(head, address);
  }
  for (const LogAddress address : was) {
    if (address.none() || address == is[0] || address == is[1]) continue;
    use_.CountLeft(head, address, use_.BytesOf(head, address));
  }
}

// (I12) The shard stores the mark of a left version before the entry. So if a client has found another version through
// the entry, it finds the mark in the version that the entry left. The shard does not flush the mark: after a restart
// no client uses a location from before. The header's crc does not cover the mark, so a damaged header stays damaged,
// and no client trusts it. A damaged entry may lead into the middle of a value. So the shard does not mark an object
// without the entry's tag in its header: that is not a version of the entry.
void ShardLog::OnEntryStored(uint32_t head, const format::IndexEntry& before, EntryWord after) {
  const LogAddress left = before.entry_word().new_address();
  if (left == after.new_address() || left.none() || Planted(Flaw::kLeftNotMarked)) return;
  const auto bytes = BytesAt(head, left);
  if (bytes.size() < sizeof(format::ObjectHeader)) return;
  const auto header = LoadAs<format::ObjectHeader>(bytes);
  if (!header.is_value() || format::EntryMeta::TagOf(header.key_hash) != before.entry_meta().tag()) return;
  OnValueLeft(OffsetOf(head, left));
}

void ShardLog::OnValueLeft(uint64_t offset) {
  if (Planted(Flaw::kLeftNotMarked)) return;
  const uint64_t first_word = nvm_.Load64(offset);
  if (format::WithLeft(first_word) != first_word) nvm_.Store64(offset, format::WithLeft(first_word));
}

void ShardLog::OnValueReplaced(const index::EntryChange& change) {
  const LogAddress address = change.after.new_address();
  use_.CountName(change.head, address, change.new_bytes);
  copies_.OnNamed(change.head, address);
  use_.CountLeft(change.head, change.before.new_address(), change.left_bytes);
}

LogAddress ShardLog::PlaceOfNoObject(uint32_t head) const {
  const auto slot = tails_.OpenSegment(head).none() ? copies_.SlotOf(head) : std::optional(tails_.SlotOf(head));
  return slot ? shape_.geometry().AddressOf(*slot, format::kGranuleBytes) : LogAddress();
}

void ShardLog::TakeCopies(uint32_t head) {
  const auto open = copies_.Open(head);
  if (!nvm_.holds_later() || !open) return;
  const uint64_t in_region = open->segment * shape_.geometry().segment_size;
  uint64_t end = format::FirstObjectOffset(open->segment);
  if (const uint64_t last = copies_.Last(head); last != 0) {
    const auto view = InspectHeader(head, shape_.geometry().AddressOf(open->slot, in_region + last));
    end = view.state == format::ObjectState::kNothing ? shape_.geometry().segment_size : last + SpaceOf(view.header);
  }
  nvm_.ZeroOut(shape_.SegmentOffset({open->region, open->segment}) + end, shape_.geometry().segment_size - end);
  nvm_.Fence();
}

void ShardLog::Empty(uint32_t head, uint32_t slot) {
  const uint32_t region = regions_.slots().RegionIn(head, slot);
  regions_.Empty(head, slot);
  segments_.ForgetRegion(region);
  use_.Forget(head, slot);
}

}  // namespace erda::log
