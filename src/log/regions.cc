// The regions: linked to a head, full, emptied, free; how much of each is needed, and where copies go.
#include "log/shard_log.h"

#include <algorithm>
#include <atomic>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::LogAddress;
using format::RegionWord;
using format::SegmentHeader;
using format::SegmentUse;

// --- Linked

// One that is in a head, or that says it is free and was opened since, has a damaged word. Entries may lead there, so
// it stays as it is.
bool ShardLog::IsFree(uint32_t region) const {
  const RegionWord word = RegionWordOf(region);
  if (word != RegionWord::Free(word.generation()) || GenerationOf(region) != 0) return false;
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    if (HeaderOf({region, segment}).OpenedAfter(word.generation())) return false;
  }
  return true;
}

std::optional<ShardLog::SegmentId> ShardLog::LinkFreeRegion(uint32_t head_number, bool for_writers) {
  Head& head = HeadAt(head_number);
  if (free_regions_ <= (for_writers ? 1 : 0) || (for_writers && IsCrowded(head))) return std::nullopt;
  uint32_t slot = 0;
  while (slot < geometry_.slots_per_head() && (head.regions[slot] != kNoRegion || head.emptying[slot])) ++slot;
  if (slot == geometry_.slots_per_head()) return std::nullopt;
  const uint32_t region = NextFree(for_writers ? 1 : 0);
  if (region == kNoRegion) return std::nullopt;

  // No two regions of a shard ever have the same one: it also tells apart those that one slot had.
  ++newest_generation_;
  const uint32_t generation =
      Planted(Flaw::kSameGeneration) ? RegionWordOf(region).generation() + 1 : newest_generation_;
  const auto word = RegionWord::Linked(geometry_, generation, head_number, slot);
  // What is not an earlier use's header was damaged while nobody used it. It must not be damage in this use.
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    const SegmentId id{region, segment};
    if (UseOf(id, word.generation()) != SegmentUse::kNotYet) ForgetSegment(id);
  }
  // Persistent before any header in it: a segment counts only beside the generation of its region.
  nvm_.Store64(RegionWordOffset(region), word.raw());
  nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
  --free_regions_;
  head.regions[slot] = region;
  head.linked[slot] = ++links_;
  CountSlots(head, 1);
  generations_[NumberInShard(region)] = word.generation();
  PublishRegion(head_number, slot, region);
  return SegmentId{region, 0};
}

// In turn, so that all of the medium wears alike. Whether a region is free is known once its segments are read, which
// no restart does: the first that are needed are read here.
uint32_t ShardLog::NextFree(uint32_t others) {
  uint32_t first = kNoRegion;
  uint32_t found = 0;
  for (uint32_t i = 0; i < geometry_.regions_per_shard && found <= others; ++i) {
    const uint32_t number = (next_region_ + i) % geometry_.regions_per_shard;
    const uint32_t region = geometry_.RegionOf(shard_, number);
    const RegionWord word = RegionWordOf(region);
    if (unusable_[number] || word != RegionWord::Free(word.generation()) || generations_[number] != 0) continue;
    if (!IsFree(region)) {
      unusable_[number] = true;
      --free_regions_;
    } else if (found++ == 0) {
      first = region;
    }
  }
  if (found <= others) return kNoRegion;
  next_region_ = NumberInShard(first) + 1;
  return first;
}

std::optional<uint32_t> ShardLog::LinkRun() {
  const uint32_t region = free_regions_ > 1 ? NextFree(1) : kNoRegion;
  if (region == kNoRegion) return std::nullopt;
  const auto word = RegionWord::OfIndex(RegionWordOf(region).generation(), static_cast<uint32_t>(runs_.size()));
  nvm_.Store64(RegionWordOffset(region), word.raw());
  if (!Planted(Flaw::kRunNotFlushed)) nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
  // In an ordinary file, before the record of the shard counts a block in it: without its runs an index is lost. (Once
  // for the entries of a region; if it fails, the next sync of the pool fails, too, and says so.)
  (void)nvm_.Sync(RegionWordOffset(region), sizeof(uint64_t));
  --free_regions_;
  runs_.push_back(region);
  return region;
}

// Released, the generation last: a client that reads a new generation also reads the region behind it. Clients look
// again when they meet a slot that they do not know, so the order is for their sake only.
void ShardLog::PublishRegion(uint32_t head, uint32_t slot, uint32_t region) {
  auto* word =
      reinterpret_cast<uint64_t*>(control_.data() + format::HeadSlotOffset(geometry_, head - FirstHead(), slot));
  const auto published =
      region == kNoRegion ? format::HeadSlot(*word).Emptied() : format::HeadSlot::Of(region, GenerationOf(region));
  std::atomic_ref<uint64_t>(*word).store(published.raw(), std::memory_order_release);
  auto* generation = reinterpret_cast<uint64_t*>(control_.data() + offsetof(format::ControlBlock, head_generation));
  std::atomic_ref<uint64_t>(*generation).fetch_add(1, std::memory_order_release);
}

uint32_t ShardLog::SlotOf(const Head& head, uint32_t region) {
  const auto it = std::find(head.regions.begin(), head.regions.end(), region);
  return static_cast<uint32_t>(it - head.regions.begin());
}

// --- What is needed

void ShardLog::OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) {
  if (FindHead(head) == nullptr) return;  // a damaged entry
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
  const bool of_header = (geometry_.OffsetInRegion(address) & (geometry_.segment_size - 1)) < sizeof(SegmentHeader);
  if (of_header || bytes.size() < sizeof(format::ObjectHeader)) return;
  Head& in = HeadAt(head);
  const uint64_t segment = geometry_.OffsetInRegion(address) >> segment_shift_;
  if (change > 0 && in.copies == SegmentId{in.regions[geometry_.SlotOf(address)], segment}) {
    in.last_copy = std::max(in.last_copy, geometry_.OffsetInRegion(address) & (geometry_.segment_size - 1));
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
  if (--UseAt(head, slot).held == 0 && IsFull(head, slot)) ++changes_;
}

bool ShardLog::IsFull(uint32_t head_number, uint32_t slot) const {
  const Head& head = *FindHead(head_number);
  const uint32_t region = head.regions[slot];
  return region != kNoRegion && region != head.open.region && region != head.copies.region;
}

// What is not known to be unused counts as filled: nobody will append there.
uint64_t ShardLog::FilledBytes(uint32_t region) const {
  uint64_t filled = 0;
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    const uint64_t first = FirstObjectOffset(segment);
    const uint64_t end = HeaderOf({region, segment}).end;
    filled += (end >= first && end <= geometry_.segment_size ? end : geometry_.segment_size) - first;
  }
  return filled;
}

ShardLog::LinkedRegion ShardLog::Linked(uint32_t head_number, uint32_t slot) {
  Head& head = HeadAt(head_number);
  const uint32_t region = head.regions[slot];
  if (head.uses[slot].filled == 0) head.uses[slot].filled = FilledBytes(region);
  return {region,          GenerationOf(region), head_number, slot, links_ - head.linked[slot],
          head.uses[slot], IsCrowded(head)};
}

// --- Copies

std::optional<ShardLog::CopySegment> ShardLog::OpenCopies(uint32_t head) const {
  const SegmentId id = FindHead(head)->copies;
  if (id.region == kNoRegion) return std::nullopt;
  return CopySegment{id.region, GenerationOf(id.region), SlotOf(*FindHead(head), id.region), id.segment};
}

std::optional<ShardLog::CopySegment> ShardLog::NextCopies(uint32_t head_number, uint64_t end) {
  Head& head = HeadAt(head_number);
  const SegmentId full = head.copies;
  SegmentId next{full.region, full.segment + 1};
  if (full.region == kNoRegion || next.segment == geometry_.segments_per_region()) {
    const auto first = LinkFreeRegion(head_number, false);
    if (!first) return std::nullopt;
    next = *first;
  }
  if (full.region != kNoRegion) SealIfOpen(full, end);
  OpenSegment(next, 0);
  head.copies = next;
  if (full.region != kNoRegion && full.region != next.region) MarkSettled(full.region);
  head.last_copy = 0;
  bytes_used_ += geometry_.segment_size;
  return OpenCopies(head_number);
}

uint64_t ShardLog::RoomForCopies(uint32_t head) const {
  const SegmentId id = FindHead(head)->copies;
  return id.region == kNoRegion ? 0 : (geometry_.segments_per_region() - 1 - id.segment) * geometry_.segment_size;
}

LogAddress ShardLog::PlaceOfNoObject(uint32_t head_number) const {
  const Head& head = *FindHead(head_number);
  const uint32_t region = head.open.region != kNoRegion ? head.open.region : head.copies.region;
  return region == kNoRegion ? LogAddress() : geometry_.AddressOf(SlotOf(head, region), format::kGranuleBytes);
}

// --- Emptied

void ShardLog::Empty(uint32_t head_number, uint32_t slot) {
  Head& head = HeadAt(head_number);
  const uint32_t region = head.regions[slot];
  // Entries that lead elsewhere by now are persistent before those who are left could find zeroes.
  if (!Planted(Flaw::kEmptiedNotFenced)) nvm_.Fence();
  nvm_.Store64(RegionWordOffset(region), RegionWord::Emptied(GenerationOf(region)).raw());
  nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
  emptied_.push_back({region, GenerationOf(region), head_number, slot});
  // (I10) A client may not know yet. As long as the region's bytes verify, they must not be taken for what an entry
  // names in a later use of the slot.
  head.emptying[slot] = !Planted(Flaw::kSlotTooEarly);
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    Segment& of_region = SegmentOf({region, segment});
    if (of_region.opened) bytes_used_ -= geometry_.segment_size;
    of_region = Segment{};
  }
  head.regions[slot] = kNoRegion;
  bytes_live_ -= head.uses[slot].live_bytes;
  head.uses[slot] = Use{};
  generations_[NumberInShard(region)] = 0;
  PublishRegion(head_number, slot, kNoRegion);
}

void ShardLog::FreeEmptied(uint32_t region) {
  const auto it = std::find_if(emptied_.begin(), emptied_.end(), [&](const auto& e) { return e.region == region; });
  // Persistent after the next fence: if it gets lost, the region is filled with zeroes once more.
  nvm_.Store64(RegionWordOffset(region), RegionWord::Free(it->generation).raw());
  nvm_.Flush(RegionWordOffset(region), sizeof(uint64_t));
  if (it->head != UINT32_MAX) {
    HeadAt(it->head).emptying[it->slot] = false;
    CountSlots(HeadAt(it->head), -1);
  }
  emptied_.erase(it);
  ++free_regions_;
}

void ShardLog::CountSlots(Head& head, int change) {
  const bool before = IsCrowded(head);
  head.used_slots += change;
  crowded_heads_ += static_cast<uint32_t>(IsCrowded(head)) - static_cast<uint32_t>(before);
}

}  // namespace erda::log
