// Taking up a pool, closing it, and what comes after a crash.
#include "log/shard_log.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::LogAddress;
using format::RegionWord;
using format::SegmentHeader;
using format::SegmentState;
using format::SegmentUse;

Status ShardLog::OpenAfterCrash(uint64_t version_limit, const Visit& visit) { return TakeUp(version_limit, &visit); }

Status ShardLog::TakeUp(uint64_t version_limit, const Visit* visit) {
  if (auto status = LinkExisting(); !status.ok()) return status;
  for (uint32_t head = FirstHead(); head < FirstHead() + geometry_.heads_per_shard; ++head) {
    if (auto status = TakeUpSegments(head, version_limit, visit); !status.ok()) return status;
  }
  return {};
}

Status ShardLog::LinkExisting() {
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    const RegionWord word = RegionWordOf(region);
    newest_generation_ = std::max(newest_generation_, word.generation());
    if (word == RegionWord::Free(word.generation())) {
      ++free_regions_;  // NextFree looks at its segments, when it is to be linked
      continue;
    }
    if (word == RegionWord::Emptied(word.generation())) {
      emptied_.push_back({region, word.generation(), UINT32_MAX, 0});
      continue;
    }
    if (word == RegionWord::OfIndex(word.generation(), word.run())) {
      if (word.run() >= geometry_.runs_max())
        return Status(Code::kCorruption, "the region table names too many runs of the index");
      if (word.run() >= runs_.size()) runs_.resize(word.run() + 1, kNoRegion);
      if (runs_[word.run()] != kNoRegion)
        return Status(Code::kCorruption, "the region table names a run of the index twice");
      runs_[word.run()] = region;
      continue;
    }
    const bool whole = word.IsWholeLink();
    const uint32_t head_number = word.HeadIn(geometry_);
    const uint32_t slot = word.SlotIn(geometry_);
    const Head* head = whole ? FindHead(head_number) : nullptr;
    if (head == nullptr || slot >= geometry_.slots_per_head() || head->regions[slot] != kNoRegion) {
      return {Code::kCorruption, "the region table is damaged: region " + std::to_string(region) + " cannot be slot " +
                                     std::to_string(word.slot()) + " of head " + std::to_string(word.head())};
    }
    HeadAt(head_number).regions[slot] = region;
    CountSlots(HeadAt(head_number), 1);
    generations_[number] = word.generation();
    PublishRegion(head_number, slot, region);
  }
  if (std::find(runs_.begin(), runs_.end(), kNoRegion) != runs_.end()) {
    return {Code::kCorruption, "the region table lacks a run of the index"};
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
  for (uint32_t slot = 0; slot < geometry_.slots_per_head(); ++slot) {
    const uint32_t region = head.regions[slot];
    if (region == kNoRegion) continue;
    if (RegionWordOf(region).settled()) {
      TakeUpSettled(region);
      continue;
    }
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
      plain_ = plain_ && walk.plain && (settled || (sealed && walk.end == header.end) || (open && walk.untouched));
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
      head.begin = head.end = head.tail;
      if (!open) continue;
      // What is no object may be a damaged one with good ones behind it, which must not be written over: then the
      // segment counts as full. After a crash Repair decides.
      if (walk.untouched && visit == nullptr) head.tail = walk.end;
      head.begin = walk.begin;
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

// Its word vouches for its segments: nothing of it is read. (MarkSettled pairs with this.)
void ShardLog::TakeUpSettled(uint32_t region) {
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    SegmentOf({region, segment}).opened = true;
    SegmentOf({region, segment}).sealed = true;
  }
  bytes_used_ += geometry_.region_size;
}

ShardLog::Walk ShardLog::WalkObjects(uint32_t head, uint32_t slot, SegmentId id, const SegmentHeader& header,
                                     const Visit* visit) const {
  Walk walk;
  uint64_t& at = walk.end;
  at = std::max(FirstObjectOffset(id.segment), header.Marked(geometry_.segment_size).value_or(0));
  walk.begin = at;
  nvm_.WillUse(SegmentOffset(id) + at, geometry_.segment_size - at);
  while (at < geometry_.segment_size) {
    const auto address = geometry_.AddressOf(slot, id.segment * geometry_.segment_size + at);
    const auto bytes = nvm_.Bytes(SegmentOffset(id) + at, geometry_.segment_size - at);
    const format::ObjectView view = format::InspectHeader(PlaceOf(head, address), bytes);
    if (view.state == format::ObjectState::kNothing || view.header.version < header.first_version) {
      walk.untouched = IsZero(bytes);
      return walk;
    }
    walk.last = at;
    if (view.header.is_chunk()) {
      at += WalkChunk(head, address, bytes, view.header, header.first_version, visit, &walk.plain);
      continue;
    }
    if (visit != nullptr) (*visit)(view);
    at += SpaceOf(view.header);
  }
  return walk;
}

// The server wrote the chunk's header, and the client everything in the chunk if it wants. So each granule is looked
// at, whatever the headers before it say: a header can tell of more places in the index, and can hide none. What breaks
// the form is damage, or a client's doing. If the client had a window it can do no other damage, and must not make the
// server look through the index: only without a window the walk is not plain then.
uint64_t ShardLog::WalkChunk(uint32_t head, LogAddress address, std::span<const std::byte> bytes,
                             const format::ObjectHeader& chunk, uint64_t first_version, const Visit* visit,
                             bool* plain) const {
  const uint64_t end = SpaceOf(chunk);
  const uint64_t limit = Planted(Flaw::kTrustsChunks) ? bytes.size() : end;
  format::Place place = PlaceOf(head, address);
  uint64_t next = format::kChunkObjectsAt;  // where the next object begins, if the client keeps the form
  bool in_form = true;
  for (uint64_t at = next; at < end; at += format::kGranuleBytes) {
    if (Planted(Flaw::kTrustsChunks) && at != next) continue;
    place.address = LogAddress::At(address.slot(), address.offset_in_slot() + at);
    const auto rest = bytes.subspan(at, limit - at);
    const format::ObjectView view = format::InspectHeader(place, rest);
    const bool is_object =
        view.state != format::ObjectState::kNothing && view.header.is_value() && view.header.version >= first_version;
    if (is_object && visit != nullptr) (*visit)(view);
    if (!in_form || at != next) continue;
    in_form = is_object;
    if (is_object) {
      next += SpaceOf(view.header);
    } else if (!chunk.has_window()) {
      *plain = *plain && IsZero(rest.first(std::min(sizeof(format::ObjectHeader), rest.size())));
    }
  }
  return Planted(Flaw::kTrustsChunks) ? std::max(next, end) : end;
}

ShardLog::Tombstone ShardLog::TombstoneIn(uint32_t head, uint32_t slot, SegmentId id) const {
  const auto address = geometry_.AddressOf(slot, format::kTombstoneSlotOffset);
  const auto bytes = nvm_.Bytes(SegmentOffset(id) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  const format::ObjectView view = format::InspectHeader(PlaceOf(head, address), bytes);
  return {view, view.state == format::ObjectState::kNothing && !IsZero(bytes)};
}

void ShardLog::Close() {
  for (const Head& head : heads_) {
    if (head.open.region != kNoRegion && head.tail == geometry_.segment_size) SealIfOpen(head.open, head.tail);
  }
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    if (generations_[number] == 0 || RegionWordOf(region).settled()) continue;
    for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
      if (const SegmentId id{region, segment}; SegmentOf(id).sealed) StoreState(id, SegmentState::kSettled);
    }
    MarkSettled(region);
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
  nvm_.ZeroOut(SegmentOffset(head.open) + head.tail, geometry_.segment_size - head.tail);
  nvm_.Fence();
}

// --- After a crash

void ShardLog::MarkNamed(uint32_t head_number, LogAddress address) {
  const uint32_t region = RegionAt(head_number, address);
  if (region == kNoRegion) return;
  const uint64_t offset = geometry_.OffsetInRegion(address);
  Segment& segment = SegmentOf({region, offset >> segment_shift_});
  // Without an object there it is the entry that is damaged, and not the segment.
  if (!segment.opened && InspectHeader(head_number, address).state == format::ObjectState::kNothing) return;
  segment.named = std::max(segment.named, static_cast<uint32_t>(offset & (geometry_.segment_size - 1)));
}

Status ShardLog::CheckNamed() const {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].opened || segments_[i].named == 0) continue;
    const uint32_t region = geometry_.RegionOf(shard_, static_cast<uint32_t>(i / geometry_.segments_per_region()));
    return {Code::kCorruption, "region " + std::to_string(region) + " is linked, and its segment " +
                                   std::to_string(i % geometry_.segments_per_region()) + " is damaged"};
  }
  return {};
}

void ShardLog::FlushFound() {
  nvm_.Flush(format::kRegionTableOffset, geometry_.regions() * sizeof(uint64_t));  // the other shards' among them
  for (size_t i = 0; i < segments_.size(); ++i) {
    const SegmentId id{geometry_.RegionOf(shard_, static_cast<uint32_t>(i / geometry_.segments_per_region())),
                       i % geometry_.segments_per_region()};
    const bool settled = RegionWordOf(id.region).settled();  // its headers were persistent before its word said so
    if (segments_[i].opened && !settled) nvm_.Flush(SegmentOffset(id), sizeof(SegmentHeader));
  }
  // Headers that nothing names may be in the caches alone: those of the puts that were to share a fence. If one got
  // lost now, the objects that come behind it could not be found by the next walk.
  for (const Head& head : heads_) {
    if (head.last != 0) nvm_.Flush(SegmentOffset(head.open) + head.begin, head.end - head.begin);
  }
}

uint32_t ShardLog::Repair() {
  uint32_t unlinked = 0;
  for (uint32_t head_number = FirstHead(); head_number < FirstHead() + geometry_.heads_per_shard; ++head_number) {
    Head& head = HeadAt(head_number);
    for (uint32_t slot = 0; slot < geometry_.slots_per_head(); ++slot) {
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
      generations_[NumberInShard(region)] = 0;
      PublishRegion(head_number, slot, kNoRegion);
      ++free_regions_;
      ++unlinked;
    }
    // A tombstone that was cut off would make every recovery to come look through the index.
    for (const uint32_t region : head.regions) {
      if (region == kNoRegion || RegionWordOf(region).settled()) continue;
      const uint32_t slot = RegionWordOf(region).SlotIn(geometry_);
      if (!TombstoneIn(head_number, slot, {region, 0}).cut_off) continue;
      nvm_.ZeroOut(geometry_.RegionOffset(region) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
    }
    // If nothing behind the objects is named, what is there was being written when the server died. (What an entry that
    // is not settled leads on to along `previous` is named, too.) Else it is damage, and the segment full.
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

}  // namespace erda::log
