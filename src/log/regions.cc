// How much of each region is needed, and where copies go.
#include "log/shard_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::LogAddress;
using format::SegmentHeader;

// --- What is needed

void ShardLog::OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) {
  if (!shape_.HasHead(head)) return;  // a damaged entry
  const LogAddress was[] = {before.new_address(), before.needed_old()};
  const LogAddress is[] = {after.new_address(), after.needed_old()};
  for (const LogAddress address : is) {
    if (address != was[0] && address != was[1]) CountName(head, address, 1);
  }
  for (const LogAddress address : was) {
    if (address != is[0] && address != is[1]) CountName(head, address, -1);
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

void ShardLog::CountName(uint32_t head, LogAddress address, int change) {
  if (address.none()) return;
  Use& use = UseAt(head, geometry_.SlotOf(address));
  use.names += change;
  if (change < 0) ++changes_;
  const auto bytes = BytesAt(head, address);
  const bool of_header = shape_.OffsetInSegment(address) < sizeof(SegmentHeader);
  if (of_header || bytes.size() < sizeof(format::ObjectHeader)) return;
  Head& in = HeadAt(head);
  const uint32_t region = regions_.RegionIn(head, geometry_.SlotOf(address));
  if (change > 0 && in.copies == shape_.SegmentOf(region, address)) {
    in.last_copy = std::max(in.last_copy, shape_.OffsetInSegment(address));
  }
  // As it stands: if it is damaged, the sum is wrong until the region is emptied, and no more than a wrong guess.
  const auto header = LoadAs<format::ObjectHeader>(bytes);
  const uint64_t space = std::min<uint64_t>(SpaceOf(header), bytes.size());
  const uint64_t before = use.live_bytes;
  use.live_bytes = change > 0 ? before + space : before - std::min(space, before);
  bytes_live_ += use.live_bytes - before;
}

void ShardLog::Release(uint32_t head, LogAddress address) {
  const uint32_t slot = geometry_.SlotOf(address);
  if (--UseAt(head, slot).held == 0 && regions_.IsFull(head, slot)) ++changes_;
}

// What is not known to be unused counts as filled: nobody will append there.
uint64_t ShardLog::FilledBytes(uint32_t region) const {
  uint64_t filled = 0;
  for (const uint64_t segment : shape_.segments()) {
    const uint64_t first = FirstObjectOffset(segment);
    const uint64_t end = HeaderOf({region, segment}).end;
    filled += (end >= first && end <= geometry_.segment_size ? end : geometry_.segment_size) - first;
  }
  return filled;
}

ShardLog::LinkedRegion ShardLog::Linked(uint32_t head, uint32_t slot) {
  const uint32_t region = regions_.RegionIn(head, slot);
  Use& use = UseAt(head, slot);
  if (use.filled == 0) use.filled = FilledBytes(region);
  return {region, regions_.GenerationOf(region), head, slot, regions_.AgeOf(head, slot), use, IsCrowded(head)};
}

// --- Copies

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
  if (!full.none()) SealIfOpen(full, end);
  OpenSegment(next, 0);
  head.copies = next;
  if (!full.none() && full.region != next.region) {
    regions_.Leave(head_number, full_slot);
    MarkSettled(full.region);
  }
  head.last_copy = 0;
  bytes_used_ += geometry_.segment_size;
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
  for (const uint64_t segment : shape_.segments()) {
    Segment& of_region = SegmentOf({region, segment});
    if (of_region.opened) bytes_used_ -= geometry_.segment_size;
    of_region = Segment{};
  }
  bytes_live_ -= UseAt(head, slot).live_bytes;
  UseAt(head, slot) = Use{};
}

}  // namespace erda::log
