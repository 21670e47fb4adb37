// What entries name, and where copies go.
#include "log/shard_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::LogAddress;

// --- Entries

void ShardLog::OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) {
  if (!shape_.HasHead(head)) return;  // a damaged entry
  const LogAddress was[] = {before.new_address(), before.needed_old()};
  const LogAddress is[] = {after.new_address(), after.needed_old()};
  for (const LogAddress address : is) {
    if (address.none() || address == was[0] || address == was[1]) continue;
    use_.Count(head, address, 1);
    OnNamed(head, address);
  }
  for (const LogAddress address : was) {
    if (!address.none() && address != is[0] && address != is[1]) use_.Count(head, address, -1);
  }
}

// (I12) Before the entry, so that who has seen another version by way of the entry finds it there. Not flushed:
// with this server ends what its clients know. Without the header's crc: a header that is damaged keeps its damage, and
// no client goes by it. What has not the entry's tag where a header has it is no version of the entry's, and is left
// alone: a damaged entry may lead into some value.
void ShardLog::OnEntryStored(uint32_t head, const format::IndexEntry& before, format::EntryWord after) {
  const LogAddress left = before.entry_word().new_address();
  if (left == after.new_address() || left.none() || Planted(Flaw::kLeftNotMarked)) return;
  const auto bytes = BytesAt(head, left);
  if (bytes.size() < sizeof(format::ObjectHeader)) return;
  const auto header = LoadAs<format::ObjectHeader>(bytes);
  if (!header.is_value() || format::EntryMeta::TagOf(header.key_hash) != before.entry_meta().tag()) return;
  const uint64_t offset = OffsetOf(head, left);
  const uint64_t first_word = nvm_.Load64(offset);
  if (format::WithLeft(first_word) != first_word) nvm_.Store64(offset, format::WithLeft(first_word));
}

// --- Copies

void ShardLog::OnNamed(uint32_t head, LogAddress address) {
  Head& of = HeadAt(head);
  if (of.copies.none() || geometry_.SlotOf(address) != of.copies_slot) return;
  if (shape_.SegmentOf(of.copies.region, address) != of.copies) return;
  // No object is elsewhere: a damaged entry, or one that was set aside, leads there.
  const uint64_t offset = shape_.OffsetInSegment(address);
  const uint64_t end = geometry_.segment_size - sizeof(format::ObjectHeader);
  if (offset >= sizeof(format::SegmentHeader) && offset <= end) of.last_copy = std::max(of.last_copy, offset);
}

std::optional<ShardLog::CopySegment> ShardLog::OpenCopies(uint32_t head) const {
  const SegmentId id = HeadAt(head).copies;
  if (id.none()) return std::nullopt;
  return CopySegment{id.region, regions_.GenerationOf(id.region), HeadAt(head).copies_slot, id.segment};
}

std::optional<ShardLog::CopySegment> ShardLog::NextCopies(uint32_t head_number, uint64_t end) {
  Head& head = HeadAt(head_number);
  const SegmentId full = head.copies;
  const uint32_t full_slot = head.copies_slot;
  SegmentId next{full.region, full.segment + 1};
  if (full.none() || next.segment == geometry_.segments_per_region()) {
    const auto slot = regions_.Link(head_number, LinkFor::kCleaner);
    if (!slot) return std::nullopt;
    next = {regions_.RegionIn(head_number, *slot), 0};
    head.copies_slot = *slot;
  }
  if (!full.none()) segments_.Seal(full, end);
  segments_.Open(next, 0);
  head.copies = next;
  if (!full.none() && full.region != next.region) segments_.LeaveRegion(head_number, full_slot);
  head.last_copy = 0;
  return OpenCopies(head_number);
}

uint64_t ShardLog::RoomForCopies(uint32_t head) const {
  const SegmentId id = HeadAt(head).copies;
  return id.none() ? 0 : (geometry_.segments_per_region() - 1 - id.segment) * geometry_.segment_size;
}

LogAddress ShardLog::PlaceOfNoObject(uint32_t head_number) const {
  const Head& head = HeadAt(head_number);
  if (head.open.none() && head.copies.none()) return {};
  return geometry_.AddressOf(head.open.none() ? head.copies_slot : head.slot, format::kGranuleBytes);
}

// --- Emptied

void ShardLog::Empty(uint32_t head, uint32_t slot) {
  const uint32_t region = regions_.RegionIn(head, slot);
  regions_.Empty(head, slot);
  segments_.ForgetRegion(region);
  use_.Forget(head, slot);
}

}  // namespace erda::log
