#include "log/shard_log.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::kSlotsPerHead;
using format::LogAddress;
using format::RegionWord;
using format::SegmentHeader;
using format::SegmentState;
using format::SegmentUse;

namespace {

// A mark costs a store and two fences. In segments of 8 MiB it moves once in 64 KiB, so that a restart walks about
// twice that, and back to what was in flight.
constexpr uint64_t kMarksPerSegment = 128;
constexpr uint64_t kMarkStepMin = 1024;

}  // namespace

ShardLog::ShardLog(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                   std::span<std::byte> control)
    : nvm_(nvm),
      geometry_(geometry),
      pool_seed_(pool_seed),
      shard_(shard),
      segment_shift_(std::countr_zero(geometry.segment_size)),
      mark_step_(std::max(geometry.segment_size / kMarksPerSegment, kMarkStepMin)),
      control_(control),
      heads_(geometry.heads_per_shard),
      segments_(geometry.regions_per_shard * geometry.segments_per_region()),
      generations_(geometry.regions_per_shard) {
  for (Head& head : heads_) {
    head.regions.assign(kSlotsPerHead, kNoRegion);
    head.uses.resize(kSlotsPerHead);
    head.linked.resize(kSlotsPerHead);
    head.emptying.resize(kSlotsPerHead);
  }
}

// --- Taking up a pool

Status ShardLog::OpenAfterCrash(uint64_t version_limit, const Visit& visit) { return TakeUp(version_limit, &visit); }

Status ShardLog::TakeUp(uint64_t version_limit, const Visit* visit) {
  if (auto status = LinkExisting(); !status.ok()) return status;
  for (uint32_t head = FirstHead(); head < FirstHead() + geometry_.heads_per_shard; ++head) {
    if (auto status = TakeUpSegments(head, version_limit, visit); !status.ok()) return status;
  }
  return {};
}

Status ShardLog::LinkExisting() {
  for (uint32_t region = FirstRegion(); region < FirstRegion() + geometry_.regions_per_shard; ++region) {
    const RegionWord word = RegionWordOf(region);
    newest_generation_ = std::max(newest_generation_, word.generation());
    if (word == RegionWord::Free(word.generation())) {
      free_regions_ += IsFree(region) ? 1 : 0;
      continue;
    }
    if (word == RegionWord::Emptied(word.generation())) {
      emptied_.push_back({region, word.generation(), UINT32_MAX, 0});
      continue;
    }
    const bool whole = word == RegionWord::Linked(word.generation(), word.head(), word.slot());
    const Head* head = whole ? FindHead(word.head()) : nullptr;
    if (head == nullptr || word.slot() >= kSlotsPerHead || head->regions[word.slot()] != kNoRegion) {
      return {Code::kCorruption, "the region table is damaged: region " + std::to_string(region) + " cannot be slot " +
                                     std::to_string(word.slot()) + " of head " + std::to_string(word.head())};
    }
    HeadAt(word.head()).regions[word.slot()] = region;
    CountSlots(HeadAt(word.head()), 1);
    generations_[region - FirstRegion()] = word.generation();
    PublishRegion(word.head(), word.slot(), region);
  }
  return {};
}

// Each used segment counts as full, but for the open one with the newest versions: that one's end is where the log goes
// on. (A power cut between sealing one segment and opening the next leaves none open, one between opening and sealing
// cannot be: sealing comes first.) Segments of a region are opened in order, the first one with the region.
Status ShardLog::TakeUpSegments(uint32_t head_number, uint64_t version_limit, const Visit* visit) {
  Head& head = HeadAt(head_number);
  uint64_t newest = 0;
  bool newest_is_open = false;
  uint32_t open_segments = 0;
  for (uint32_t slot = 0; slot < kSlotsPerHead; ++slot) {
    const uint32_t region = head.regions[slot];
    if (region == kNoRegion) continue;
    bool opened_all = true;  // so far
    // The segment's first version, but that a later segment of a region is newer whatever a damaged header says.
    uint64_t age = 0;
    for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
      const SegmentId id{region, segment};
      const SegmentHeader header = HeaderOf(id);
      const SegmentUse use = UseOf(id, RegionWordOf(region).generation());
      if (use == SegmentUse::kNotYet && (segment > 0 || visit != nullptr)) {
        opened_all = false;
        continue;
      }
      if (use != SegmentUse::kOpened || !opened_all) {
        // After a crash it is not fatal if no entry leads there.
        if (visit == nullptr) {
          return {Code::kCorruption, "region " + std::to_string(region) + " is linked, and its segment " +
                                         std::to_string(segment) + " is damaged"};
        }
        plain_ = opened_all = false;
        SegmentOf(id).damaged = true;
        continue;
      }
      if (header.first_version >= version_limit) {
        return {Code::kCorruption, "a segment of region " + std::to_string(region) + " has versions over the limit"};
      }
      bytes_used_ += geometry_.segment_size;
      SegmentOf(id).opened = true;
      SegmentOf(id).sealed = true;
      if (header.copies()) {
        const bool open_one = header.state == static_cast<uint64_t>(SegmentState::kCopies);
        if (!open_one || head.copies.region != kNoRegion) continue;
        SegmentOf(id).sealed = false;
        head.copies = id;
        continue;
      }
      if (segment == 0 && visit != nullptr) {
        const Tombstone last = TombstoneIn(head_number, slot, id);
        plain_ = plain_ && !last.cut_off;
        const bool is_one = last.view.state != format::ObjectState::kNothing;
        if (is_one && last.view.header.version >= header.first_version) (*visit)(last.view);
      }
      const bool open = header.state == static_cast<uint64_t>(SegmentState::kOpen);
      const bool settled = header.state == static_cast<uint64_t>(SegmentState::kSettled);
      Walk walk;
      if (open || (visit != nullptr && !settled)) {
        walk = WalkObjects(head_number, slot, id, header, visit);
      }
      const bool sealed = header.state == static_cast<uint64_t>(SegmentState::kSealed);
      plain_ = plain_ && (settled || (sealed && walk.end == header.end) || (open && walk.untouched));
      open_segments += open ? 1 : 0;
      // A region that was linked and not filled to the end is where the next segment comes from, open or not.
      age = std::max(age, header.first_version);
      if (age < newest) continue;
      newest = age;
      newest_is_open = open;
      head.slot = slot;
      head.open = id;
      head.tail = geometry_.segment_size;
      head.last = 0;
      head.end = head.tail;
      if (!open) continue;
      // What is no object may be a damaged one with good ones behind it, which must not be written over: then the
      // segment counts as full. After a crash Repair decides.
      if (walk.untouched && visit == nullptr) head.tail = walk.end;
      head.last = walk.last;
      head.end = walk.end;
    }
  }
  // At most one can be open, and that is the newest.
  plain_ = plain_ && open_segments == (newest_is_open ? 1U : 0U);
  if (head.open.region == kNoRegion) return {};
  SegmentOf(head.open).sealed = head.tail == geometry_.segment_size;
  bytes_used_ -= geometry_.segment_size - head.tail;
  head.mark = head.tail;
  return {};
}

ShardLog::Walk ShardLog::WalkObjects(uint32_t head, uint32_t slot, SegmentId id, const SegmentHeader& header,
                                     const Visit* visit) const {
  Walk walk;
  uint64_t& at = walk.end;
  at = std::max(FirstObjectOffset(id.segment), header.Marked(geometry_.segment_size).value_or(0));
  while (at < geometry_.segment_size) {
    const auto address = LogAddress::At(slot, id.segment * geometry_.segment_size + at);
    const auto bytes = nvm_.Bytes(SegmentOffset(id) + at, geometry_.segment_size - at);
    const format::ObjectView view = format::InspectHeader(PlaceOf(head, address), bytes);
    if (view.state == format::ObjectState::kNothing || view.header.version < header.first_version) {
      walk.untouched = IsZero(bytes);
      return walk;
    }
    if (visit != nullptr) (*visit)(view);
    walk.last = at;
    at += format::ObjectSpace(view.header.key_size, view.header.value_size);
  }
  return walk;
}

ShardLog::Tombstone ShardLog::TombstoneIn(uint32_t head, uint32_t slot, SegmentId id) const {
  const auto address = LogAddress::At(slot, format::kTombstoneSlotOffset);
  const auto bytes = nvm_.Bytes(SegmentOffset(id) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  const format::ObjectView view = format::InspectHeader(PlaceOf(head, address), bytes);
  return {view, view.state == format::ObjectState::kNothing && !IsZero(bytes)};
}

void ShardLog::Close() {
  for (const Head& head : heads_) {
    if (head.open.region != kNoRegion && head.tail == geometry_.segment_size) SealIfOpen(head.open, head.tail);
  }
  for (uint32_t region = FirstRegion(); region < FirstRegion() + geometry_.regions_per_shard; ++region) {
    for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
      if (const SegmentId id{region, segment}; SegmentOf(id).sealed) StoreState(id, SegmentState::kSettled);
    }
  }
  for (Head& head : heads_) {
    if (head.open.region == kNoRegion) continue;
    ClearTail(head);
    MoveMark(head);
  }
}

// Behind the objects there are zeroes, so that whoever opens the pool knows the end from damage. Something else can
// only be what a crash cut off, and recovery let lie.
void ShardLog::ClearTail(const Head& head) {
  const uint64_t at = SegmentOffset(head.open) + head.tail;
  const uint64_t bytes = geometry_.segment_size - head.tail;
  nvm_.ZeroOut(at, bytes);
  nvm_.Flush(at, bytes);  // zeroes of a recovery that was cut off may be in the caches alone
  nvm_.Fence();
}

// --- After a crash

void ShardLog::MarkNamed(uint32_t head_number, LogAddress address) {
  const uint32_t region = RegionAt(head_number, address);
  const uint64_t offset = address.offset_in_region();
  if (region == kNoRegion || offset >= geometry_.region_size) return;
  Segment& segment = SegmentOf({region, offset >> segment_shift_});
  // Without an object there it is the entry that is damaged, and not the segment.
  if (!segment.opened && InspectHeader(head_number, address).state == format::ObjectState::kNothing) return;
  segment.named = std::max(segment.named, static_cast<uint32_t>(offset & (geometry_.segment_size - 1)));
}

Status ShardLog::CheckNamed() const {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].opened || segments_[i].named == 0) continue;
    const uint64_t region = FirstRegion() + i / geometry_.segments_per_region();
    return {Code::kCorruption, "region " + std::to_string(region) + " is linked, and its segment " +
                                   std::to_string(i % geometry_.segments_per_region()) + " is damaged"};
  }
  return {};
}

void ShardLog::FlushFound() {
  nvm_.Flush(RegionWordOffset(FirstRegion()), geometry_.regions_per_shard * sizeof(uint64_t));
  for (size_t i = 0; i < segments_.size(); ++i) {
    const SegmentId id{static_cast<uint32_t>(FirstRegion() + i / geometry_.segments_per_region()),
                       i % geometry_.segments_per_region()};
    if (segments_[i].opened) nvm_.Flush(SegmentOffset(id), sizeof(SegmentHeader));
  }
  // Each header was made persistent before the next place was given out. If the last one got lost now, the objects that
  // come behind it could not be found by the next walk.
  constexpr uint64_t kHeaderAndKeyMax = format::ChecksumOffset(format::kKeyBytesMax);
  for (const Head& head : heads_) {
    if (head.last == 0) continue;
    nvm_.Flush(SegmentOffset(head.open) + head.last, std::min(kHeaderAndKeyMax, head.end - head.last));
  }
}

uint32_t ShardLog::Repair() {
  uint32_t unlinked = 0;
  for (uint32_t head_number = FirstHead(); head_number < FirstHead() + geometry_.heads_per_shard; ++head_number) {
    Head& head = HeadAt(head_number);
    for (uint32_t slot = 0; slot < kSlotsPerHead; ++slot) {
      const uint32_t region = head.regions[slot];
      if (region == kNoRegion) continue;
      // No entry leads there (CheckNamed). Left as it is, it would be damage to who opens the closed pool.
      for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
        if (SegmentOf({region, segment}).damaged) ForgetSegment({region, segment});
      }
      if (SegmentOf({region, 0}).opened) continue;
      nvm_.Store64(RegionWordOffset(region), RegionWord::Free(RegionWordOf(region).generation()).raw());
      nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
      head.regions[slot] = kNoRegion;
      CountSlots(head, -1);
      generations_[region - FirstRegion()] = 0;
      PublishRegion(head_number, slot, kNoRegion);
      ++free_regions_;
      ++unlinked;
    }
    // A tombstone that was cut off would make every recovery to come look through the index.
    for (const uint32_t region : head.regions) {
      if (region == kNoRegion) continue;
      const uint32_t slot = RegionWordOf(region).slot();
      if (!TombstoneIn(head_number, slot, {region, 0}).cut_off) continue;
      nvm_.ZeroOut(geometry_.RegionOffset(region) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
    }
    // If nothing behind the objects is named, what is there was being written when the server died. (What an entry's
    // versions lead on to along `previous` is older, and so stands before it.) Else it is damage, and the segment full.
    if (head.open.region == kNoRegion || SegmentOf(head.open).named >= head.end) continue;
    head.tail = Planted(Flaw::kTailTooEarly) && head.last != 0 ? head.last : head.end;
    SegmentOf(head.open).sealed = head.tail == geometry_.segment_size;
    bytes_used_ -= geometry_.segment_size - head.tail;
  }
  nvm_.Fence();
  return unlinked;
}

// It looks as it did before it was opened.
void ShardLog::ForgetSegment(SegmentId id) {
  nvm_.ZeroOut(SegmentOffset(id), std::min(format::kMendedBytesMax, geometry_.segment_size));
  nvm_.Fence();
}

// --- Appending

Result<ShardLog::Space> ShardLog::Reserve(uint32_t head_number, uint64_t bytes, uint64_t version) {
  Head& head = HeadAt(head_number);
  const bool fits = head.open.region != kNoRegion && head.tail + bytes <= geometry_.segment_size;
  if (!fits && !OpenNextSegment(head_number, version)) return Status(Code::kResourceExhausted);
  if (head.tail - head.mark >= mark_step_) MoveMark(head);
  const Space space{LogAddress::At(head.slot, head.open.segment * geometry_.segment_size + head.tail),
                    SegmentOffset(head.open) + head.tail};
  head.tail += bytes;
  bytes_used_ += bytes;
  appended_ += bytes;
  return space;
}

bool ShardLog::OpenNextSegment(uint32_t head_number, uint64_t version) {
  Head& head = HeadAt(head_number);
  const bool in_region = head.open.region != kNoRegion && head.open.segment + 1 < geometry_.segments_per_region();
  const SegmentId full = head.open;
  const uint64_t full_tail = head.tail;
  if (in_region) {
    ++head.open.segment;
  } else {
    const auto first = LinkFreeRegion(head_number, true);
    if (!first) return false;
    head.open = *first;
    head.slot = SlotOf(head, first->region);
  }
  if (full.region != kNoRegion) {
    bytes_used_ += geometry_.segment_size - full_tail;
    SealIfOpen(full, full_tail);
  }
  OpenSegment(head.open, version);
  head.tail = head.mark = FirstObjectOffset(head.open.segment);
  head.in_flight = 0;
  bytes_used_ += head.tail;
  return true;
}

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
  while (slot < kSlotsPerHead && (head.regions[slot] != kNoRegion || head.emptying[slot])) ++slot;
  if (slot == kSlotsPerHead) return std::nullopt;
  // In turn, so that all of the medium wears alike.
  uint32_t region = kNoRegion;
  for (uint32_t i = 0; i < geometry_.regions_per_shard && region == kNoRegion; ++i) {
    const uint32_t next = FirstRegion() + (next_region_ + i) % geometry_.regions_per_shard;
    if (IsFree(next)) region = next;
  }
  if (region == kNoRegion) return std::nullopt;
  next_region_ = region - FirstRegion() + 1;

  // No two regions of a shard ever have the same one: it also tells apart those that one slot had.
  ++newest_generation_;
  const uint32_t generation =
      Planted(Flaw::kSameGeneration) ? RegionWordOf(region).generation() + 1 : newest_generation_;
  const auto word = RegionWord::Linked(generation, head_number, slot);
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
  generations_[region - FirstRegion()] = word.generation();
  PublishRegion(head_number, slot, region);
  return SegmentId{region, 0};
}

void ShardLog::OpenSegment(SegmentId id, uint64_t version) {
  SegmentHeader header{};
  header.state = static_cast<uint64_t>(version == 0 ? SegmentState::kCopies : SegmentState::kOpen);
  header.first_version = version;
  const uint64_t at = SegmentOffset(id);
  // The identity makes the header count, so it comes after the rest. Until then an earlier use's stays.
  constexpr uint64_t kBehindIdentity = offsetof(SegmentHeader, state);
  nvm_.Write(at + kBehindIdentity, BytesOf(header).subspan(kBehindIdentity));
  nvm_.Persist(at, sizeof(header));
  nvm_.Store64(at + offsetof(SegmentHeader, identity), SegmentHeader::Identity(GenerationOf(id.region)));
  nvm_.Persist(at + offsetof(SegmentHeader, identity), sizeof(uint64_t));
  SegmentOf(id) = Segment{};
  SegmentOf(id).opened = true;
}

// (What was taken up as full may have been sealed before a crash, and states its end.)
void ShardLog::SealIfOpen(SegmentId id, uint64_t end) {
  const uint64_t state = HeaderOf(id).state;
  if (state == static_cast<uint64_t>(SegmentState::kSealed) || state == static_cast<uint64_t>(SegmentState::kSettled)) {
    return;
  }
  Segment& segment = SegmentOf(id);
  segment.sealed = true;
  // Persistent by the fence in StoreState: who finds the segment sealed knows where its objects end.
  nvm_.Store64(SegmentOffset(id) + offsetof(SegmentHeader, end), end);
  nvm_.Flush(SegmentOffset(id) + offsetof(SegmentHeader, end), sizeof(uint64_t));
  StoreState(id, segment.in_flight == 0 ? SegmentState::kSettled : SegmentState::kSealed);
}

void ShardLog::EndFlight(uint32_t head_number, LogAddress address) {
  Head& head = HeadAt(head_number);
  const SegmentId id{head.regions[address.slot()], address.offset_in_region() >> segment_shift_};
  Segment& segment = SegmentOf(id);
  --segment.in_flight;
  if (id == head.open && (address.offset_in_region() & (geometry_.segment_size - 1)) < head.mark) --head.in_flight;
  if (segment.in_flight == 0 && segment.sealed) StoreState(id, SegmentState::kSettled);
}

// Between two operations: of what was given out before, only what is in flight is not settled. So the place that waited
// is reached by the mark once nothing before it is in flight, however much is behind; then the tail is the next one to
// wait for. (If nothing at all is in flight, the mark is there at once.)
void ShardLog::MoveMark(Head& head) {
  if (head.in_flight != 0 && !Planted(Flaw::kMarksInFlight)) return;
  head.in_flight = SegmentOf(head.open).in_flight;
  const uint64_t reached = head.in_flight == 0 ? head.tail : head.mark;
  head.mark = head.tail;
  StoreInHeader(head.open, offsetof(SegmentHeader, mark), SegmentHeader::Mark(reached));
}

void ShardLog::StoreState(SegmentId id, SegmentState state) {
  StoreInHeader(id, offsetof(SegmentHeader, state), static_cast<uint64_t>(state));
}

// State and mark say what is settled. They may only be persistent after every entry that settled something here is:
// StoreWordLazily leaves some to the next fence, so one comes first.
void ShardLog::StoreInHeader(SegmentId id, uint64_t field, uint64_t value) {
  const uint64_t at = SegmentOffset(id) + field;
  if (nvm_.Load64(at) == value) return;
  nvm_.Fence();
  nvm_.Store64(at, value);
  nvm_.Persist(at, sizeof(uint64_t));
}

// --- Cleaning

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

void ShardLog::CountName(uint32_t head, LogAddress address, int change) {
  if (address.none()) return;
  Use& use = UseAt(head, address.slot());
  use.names += change;
  if (change < 0) ++unnamed_;
  const auto bytes = BytesAt(head, address);
  const bool of_header = (address.offset_in_region() & (geometry_.segment_size - 1)) < sizeof(SegmentHeader);
  if (of_header || bytes.size() < sizeof(format::ObjectHeader)) return;
  // As it stands: if it is damaged, the sum is wrong until the region is emptied, and no more than a wrong guess.
  const auto header = LoadAs<format::ObjectHeader>(bytes);
  const uint64_t space = std::min<uint64_t>(format::ObjectSpace(header.key_size, header.value_size), bytes.size());
  const uint64_t before = use.live_bytes;
  use.live_bytes = change > 0 ? before + space : before - std::min(space, before);
  bytes_live_ += use.live_bytes - before;
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
  bytes_used_ += geometry_.segment_size;
  return OpenCopies(head_number);
}

uint64_t ShardLog::RoomForCopies(uint32_t head) const {
  const SegmentId id = FindHead(head)->copies;
  return id.region == kNoRegion ? 0 : (geometry_.segments_per_region() - 1 - id.segment) * geometry_.segment_size;
}

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
  generations_[region - FirstRegion()] = 0;
  PublishRegion(head_number, slot, kNoRegion);
}

void ShardLog::FreeEmptied(uint32_t region) {
  const auto it = std::find_if(emptied_.begin(), emptied_.end(), [&](const auto& e) { return e.region == region; });
  nvm_.Store64(RegionWordOffset(region), RegionWord::Free(it->generation).raw());
  nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
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

LogAddress ShardLog::PlaceOfNoObject(uint32_t head_number) const {
  const Head& head = *FindHead(head_number);
  const uint32_t region = head.open.region != kNoRegion ? head.open.region : head.copies.region;
  return region == kNoRegion ? LogAddress() : LogAddress::At(SlotOf(head, region), format::kGranuleBytes);
}

uint32_t ShardLog::SlotOf(const Head& head, uint32_t region) {
  const auto it = std::find(head.regions.begin(), head.regions.end(), region);
  return static_cast<uint32_t>(it - head.regions.begin());
}

// --- Looking up

const ShardLog::Head* ShardLog::FindHead(uint32_t head) const {
  if (head < FirstHead() || head >= FirstHead() + geometry_.heads_per_shard) return nullptr;
  return &heads_[head - FirstHead()];
}

uint32_t ShardLog::RegionAt(uint32_t head, LogAddress address) const {
  const Head* found = address.none() ? nullptr : FindHead(head);
  return found == nullptr ? kNoRegion : found->regions[address.slot()];
}

ShardLog::Segment& ShardLog::SegmentOf(SegmentId id) {
  return segments_[(id.region - FirstRegion()) * geometry_.segments_per_region() + id.segment];
}

ShardLog::Segment& ShardLog::SegmentAt(uint32_t head, LogAddress address) {
  return SegmentOf({HeadAt(head).regions[address.slot()], address.offset_in_region() / geometry_.segment_size});
}

uint64_t ShardLog::OffsetOf(uint32_t head, LogAddress address) const {
  return geometry_.RegionOffset(FindHead(head)->regions[address.slot()]) + address.offset_in_region();
}

std::span<const std::byte> ShardLog::BytesAt(uint32_t head_number, LogAddress address) const {
  const uint32_t region = RegionAt(head_number, address);
  const uint64_t offset = address.offset_in_region();
  if (region == kNoRegion || offset >= geometry_.region_size) return {};
  const uint64_t in_segment = offset & (geometry_.segment_size - 1);
  return nvm_.Bytes(geometry_.RegionOffset(region) + offset, geometry_.segment_size - in_segment);
}

ShardLog::Space ShardLog::TombstoneSlot(uint32_t head_number) const {
  const Head* head = FindHead(head_number);
  return {LogAddress::At(head->slot, format::kTombstoneSlotOffset),
          geometry_.RegionOffset(head->open.region) + format::kTombstoneSlotOffset};
}

// Released, the generation last: a client that reads a new generation also reads the region behind it. Clients look
// again when they meet a slot that they do not know, so the order is for their sake only.
void ShardLog::PublishRegion(uint32_t head, uint32_t slot, uint32_t region) {
  auto* word = reinterpret_cast<uint64_t*>(control_.data() + format::HeadSlotOffset(head - FirstHead(), slot));
  const auto published =
      region == kNoRegion ? format::HeadSlot(*word).Emptied() : format::HeadSlot::Of(region, GenerationOf(region));
  std::atomic_ref<uint64_t>(*word).store(published.raw(), std::memory_order_release);
  auto* generation = reinterpret_cast<uint64_t*>(control_.data() + offsetof(format::ControlBlock, head_generation));
  std::atomic_ref<uint64_t>(*generation).fetch_add(1, std::memory_order_release);
}

}  // namespace erda::log
