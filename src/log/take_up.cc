// Taking up a pool, closing it, and what comes after a crash.
#include "log/shard_log.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/planted.h"

namespace erda::log {

using format::FirstObjectOffset;
using format::LogAddress;
using format::SegmentHeader;
using format::SegmentState;
using format::SegmentUse;

Status ShardLog::OpenAfterCrash(uint64_t version_limit, const Visit& visit) { return TakeUp(version_limit, &visit); }

Status ShardLog::TakeUp(uint64_t version_limit, const Visit* visit) {
  if (auto status = regions_.TakeUp(); !status.ok()) return status;
  for (const uint32_t head : shape_.heads()) {
    if (auto status = TakeUpSegments(head, version_limit, visit); !status.ok()) return status;
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
  for (const uint32_t slot : shape_.slots()) {
    const uint32_t region = regions_.RegionIn(head_number, slot);
    if (region == kNoRegion) continue;
    if (regions_.IsSettled(region)) {
      TakeUpSettled(region);
      continue;
    }
    bool opened_all = true;  // so far
    // The segment's first version, but that a later segment of a region is newer whatever a damaged header says.
    uint64_t age = 0;
    for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
      const SegmentId id{region, segment};
      const SegmentHeader header = HeaderOf(id);
      const SegmentUse use = UseOf(nvm_, shape_, id, regions_.GenerationOf(region));
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
        FoundAt(id).damaged = true;
        continue;
      }
      if (header.first_version >= version_limit) {
        return {Code::kCorruption, "a segment of region " + std::to_string(region) + " has versions over the limit"};
      }
      segments_.TakeUp(id);
      if (header.copies()) {
        const bool open_one = header.state == static_cast<uint64_t>(SegmentState::kCopies);
        if (!open_one || !head.copies.none()) continue;
        segments_.Reopen(id);
        head.copies = id;
        head.copies_slot = slot;
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
  if (!head.copies.none()) regions_.Reopen(head_number, head.copies_slot);
  if (head.open.none()) return {};
  regions_.Reopen(head_number, head.slot);
  if (head.tail < geometry_.segment_size) segments_.Reopen(head.open);
  room_ += geometry_.segment_size - head.tail;
  head.mark = head.tail;
  return {};
}

// Its word vouches for its segments: nothing of it is read. (Segments::SettleRegion pairs with this.)
void ShardLog::TakeUpSettled(uint32_t region) {
  for (const uint64_t segment : shape_.segments()) segments_.TakeUp({region, segment});
}

ShardLog::Walk ShardLog::WalkObjects(uint32_t head, uint32_t slot, SegmentId id, const SegmentHeader& header,
                                     const Visit* visit) const {
  Walk walk;
  uint64_t& at = walk.end;
  at = std::max(FirstObjectOffset(id.segment), header.Marked(geometry_.segment_size).value_or(0));
  walk.begin = at;
  nvm_.WillUse(shape_.SegmentOffset(id) + at, geometry_.segment_size - at);
  while (at < geometry_.segment_size) {
    const auto address = geometry_.AddressOf(slot, id.segment * geometry_.segment_size + at);
    const auto bytes = nvm_.Bytes(shape_.SegmentOffset(id) + at, geometry_.segment_size - at);
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
  const auto bytes = nvm_.Bytes(shape_.SegmentOffset(id) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  const format::ObjectView view = format::InspectHeader(PlaceOf(head, address), bytes);
  return {view, view.state == format::ObjectState::kNothing && !IsZero(bytes)};
}

void ShardLog::Close() {
  for (const Head& head : heads_) {
    if (!head.open.none() && head.tail == geometry_.segment_size) segments_.Seal(head.open, head.tail);
  }
  segments_.SettleAll();
  for (Head& head : heads_) {
    if (head.open.none()) continue;
    ClearTail(head);
    MoveMark(head);
  }
}

// Behind the objects there are zeroes, so that whoever opens the pool knows the end from damage. Something else can
// only be what a crash cut off, and recovery let lie.
void ShardLog::ClearTail(const Head& head) {
  nvm_.ZeroOut(shape_.SegmentOffset(head.open) + head.tail, geometry_.segment_size - head.tail);
  nvm_.Fence();
}

// --- After a crash

void ShardLog::MarkNamed(uint32_t head_number, LogAddress address) {
  const uint32_t region = regions_.RegionAt(head_number, address);
  if (region == kNoRegion) return;
  const SegmentId id = shape_.SegmentOf(region, address);
  // Without an object there it is the entry that is damaged, and not the segment.
  if (!segments_.IsOpened(id) && InspectHeader(head_number, address).state == format::ObjectState::kNothing) return;
  FoundAt(id).named = std::max(FoundAt(id).named, shape_.OffsetInSegment(address));
}

Status ShardLog::CheckNamed() const {
  for (size_t i = 0; i < found_segments_.size(); ++i) {
    const uint32_t region = shape_.RegionOf(static_cast<uint32_t>(i / geometry_.segments_per_region()));
    const uint64_t segment = i % geometry_.segments_per_region();
    if (segments_.IsOpened({region, segment}) || found_segments_[i].named == 0) continue;
    return {Code::kCorruption, "region " + std::to_string(region) + " is linked, and its segment " +
                                   std::to_string(segment) + " is damaged"};
  }
  return {};
}

void ShardLog::FlushFound() {
  nvm_.Flush(format::kRegionTableOffset, geometry_.regions() * sizeof(uint64_t));  // the other shards' among them
  for (size_t i = 0; i < found_segments_.size(); ++i) {
    const SegmentId id{shape_.RegionOf(static_cast<uint32_t>(i / geometry_.segments_per_region())),
                       i % geometry_.segments_per_region()};
    const bool settled = regions_.IsSettled(id.region);  // its headers were persistent before its word said so
    if (segments_.IsOpened(id) && !settled) nvm_.Flush(shape_.SegmentOffset(id), sizeof(SegmentHeader));
  }
  // Headers that nothing names may be in the caches alone: those of the puts that were to share a fence. If one got
  // lost now, the objects that come behind it could not be found by the next walk.
  for (const Head& head : heads_) {
    if (head.last != 0) nvm_.Flush(shape_.SegmentOffset(head.open) + head.begin, head.end - head.begin);
  }
}

uint32_t ShardLog::Repair() {
  uint32_t unlinked = 0;
  for (const uint32_t head_number : shape_.heads()) {
    Head& head = HeadAt(head_number);
    for (const uint32_t slot : shape_.slots()) {
      const uint32_t region = regions_.RegionIn(head_number, slot);
      if (region == kNoRegion) continue;
      // No entry leads there (CheckNamed). Left as it is, it would be damage to who opens the closed pool.
      for (const uint64_t segment : shape_.segments()) {
        if (FoundAt({region, segment}).damaged) ForgetSegment(nvm_, shape_, {region, segment});
      }
      if (segments_.IsOpened({region, 0})) continue;
      regions_.Unlink(head_number, slot);
      ++unlinked;
    }
    // A tombstone that was cut off would make every recovery to come look through the index.
    for (const uint32_t slot : shape_.slots()) {
      const uint32_t region = regions_.RegionIn(head_number, slot);
      if (region == kNoRegion || regions_.IsSettled(region)) continue;
      if (!TombstoneIn(head_number, slot, {region, 0}).cut_off) continue;
      nvm_.ZeroOut(geometry_.RegionOffset(region) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
    }
    // If nothing behind the objects is named, what is there was being written when the server died. (What an entry that
    // is not settled leads on to along `previous` is named, too.) Else it is damage, and the segment full.
    if (head.open.none() || FoundAt(head.open).named >= head.end) continue;
    head.tail = Planted(Flaw::kTailTooEarly) && head.last != 0 ? head.last : head.end;
    if (head.tail < geometry_.segment_size) segments_.Reopen(head.open);
    room_ += geometry_.segment_size - head.tail;
  }
  nvm_.Fence();
  return unlinked;
}

}  // namespace erda::log
