// The record of a shard, its regions, and the log in them, segment by segment.
#include <algorithm>
#include <utility>

#include "format/version_limit.h"
#include "inspect/shard_inspector.h"

namespace erda::inspect {

using format::FirstObjectOffset;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;
using format::RegionWord;
using format::SegmentHeader;
using format::SegmentState;

void ShardInspector::LookAtRecord() {
  const auto record = LoadAs<format::ShardRecord>(
      Bytes(format::kShardRecordsOffset + shard_.shard * sizeof(format::ShardRecord), sizeof(format::ShardRecord)));
  const auto limit = format::VersionLimitIn(record.version_limit);
  const format::CheckedWord keys(record.keys);
  shard_.version_limit = limit.value_or(UINT64_MAX);
  shard_.keys_at_close = keys.number();
  LookAtBlocks(format::CheckedWord(record.blocks));
  const format::CheckedWord reaches(record.reaches);
  layout_.SetReaches(format::ReachesIn(reaches));
  shard_.index_blocks = layout_.blocks();
  for (uint64_t of = 0; of < format::Reaches::kClasses; ++of) {
    const uint64_t slots = layout_.WindowOf(of << 60).slots();
    shard_.window_slots = std::max(shard_.window_slots, slots);
    shard_.windows_grown += slots > format::kNeighbourhood ? 1 : 0;
  }
  shard_.index_slots = layout_.slots();
  shard_.log_bytes = (g_.regions_per_shard - shard_.regions_index) * g_.region_size;
  budget_ = shard_.log_bytes;
  if (!limit) Add("the shard's record has a damaged limit of versions");
  if (keys.damaged() || keys.number() > layout_.slots()) Add("the shard's record has a damaged number of keys");
  if (reaches.damaged()) Add("the shard's record has a damaged number of reaches: all are taken for the farthest");
  const format::CheckedWord checked_move(record.move);
  const format::MoveWord move(checked_move.number());
  if (record.move == 0) return;
  if (checked_move.damaged() || !move.Fits(layout_.slots())) {
    Add("the shard's record names a move in its index that cannot be");
    return;
  }
  const IndexEntry first = EntryAt(move.from());
  const bool under_way = first.word != 0 && format::IsMovedCopy(first, EntryAt(move.to()), move.to() - move.from());
  shard_.move = ShardReport::Move{move.from(), move.to(), under_way};
}

// The first ones alone, if the record is damaged, or a run is missing.
void ShardInspector::LookAtBlocks(format::CheckedWord record) {
  const uint64_t blocks = record.raw() == 0 ? g_.first_blocks() : record.number();
  const uint32_t runs = shard_.regions_index;
  const bool can_be = !record.damaged() && blocks >= g_.first_blocks() && blocks <= g_.blocks_max();
  if (can_be) layout_.SetBlocks(blocks);
  bool known = true;
  for (uint64_t block = g_.first_blocks(); block < layout_.blocks(); ++block) known = known && layout_.IsKnown(block);
  if (!known) layout_.SetBlocks(g_.first_blocks());
  const bool fits = runs <= (layout_.grown() ? layout_.RunOf(layout_.blocks() - 1) + 2 : 1);
  if (!can_be || !known || !fits) Add("the index has not the blocks that the shard's record says");
}

void ShardInspector::LinkRegions() {
  for (uint32_t number = 0; number < g_.regions_per_shard; ++number) {
    const uint32_t region = g_.RegionOf(shard_.shard, number);
    const RegionWord word = RegionWordOf(region);
    if (word == RegionWord::Free(word.generation())) {
      ++shard_.regions_free;
      bool opened = false;
      for (uint64_t at = g_.RegionOffset(region); at < g_.RegionOffset(region) + g_.region_size;
           at += g_.segment_size) {
        opened |= LoadAs<SegmentHeader>(Bytes(at, sizeof(SegmentHeader))).OpenedAfter(word.generation());
      }
      if (opened)
        Add("the region table is damaged: region " + std::to_string(region) +
            " is marked as free, and was opened since then");
      continue;
    }
    if (word == RegionWord::Emptied(word.generation())) {
      ++shard_.regions_emptied;
      continue;
    }
    if (word == RegionWord::OfIndex(word.generation(), word.run())) {
      const bool can_be = word.run() < runs_.size() && runs_[word.run()] == 0;
      if (can_be) runs_[word.run()] = region + 1;
      if (!can_be)
        Add("the region table is damaged: region " + std::to_string(region) + " cannot be run " +
            std::to_string(word.run()) + " of the index");
      ++shard_.regions_index;
      continue;
    }
    const bool whole = word.IsWholeLink();
    const uint64_t head = word.HeadIn(g_) - FirstHead();  // huge if it is an earlier shard's
    const uint32_t slot = word.SlotIn(g_);
    if (!whole || head >= g_.heads_per_shard || slot >= g_.slots_per_head() || RegionIn(head, slot) != kNoRegion) {
      Add("the region table is damaged: region " + std::to_string(region) + " cannot be slot " +
          std::to_string(word.slot()) + " of head " + std::to_string(word.head()));
      continue;
    }
    ++shard_.regions_linked;
    RegionIn(head, slot) = region;
  }
}

void ShardInspector::LookAtHead(uint32_t head_in_shard) {
  HeadReport head;
  head.head = static_cast<uint32_t>(FirstHead() + head_in_shard);
  walked_ = {};
  for (uint32_t slot = 0; slot < g_.slots_per_head(); ++slot) {
    const uint32_t region = RegionIn(head_in_shard, slot);
    if (region == kNoRegion) continue;
    ++head.regions;
    walked_.opened_all = true;
    walked_.segment_first = 0;
    for (uint64_t segment = 0; segment < g_.segments_per_region(); ++segment) {
      LookAtSegment(&head, slot, region, segment);
    }
  }
  if (head.segments.open > (walked_.newest_is_open ? 1U : 0U)) {
    Add("head " + std::to_string(head.head) + " has an open segment that is not its newest");
  }
  shard_.object_bytes += head.object_bytes;
  shard_.heads.push_back(head);
}

void ShardInspector::LookAtSegment(HeadReport* head, uint32_t slot, uint32_t region, uint64_t segment) {
  const auto where = [&] { return "segment " + std::to_string(segment) + " of region " + std::to_string(region); };
  const uint64_t offset = g_.RegionOffset(region) + segment * g_.segment_size;
  const auto header = LoadAs<SegmentHeader>(Bytes(offset, sizeof(SegmentHeader)));
  const uint32_t generation = RegionWordOf(region).generation();
  const auto object_at = [&](uint64_t at, uint64_t end) {
    const auto address = g_.AddressOf(slot, segment * g_.segment_size + at);
    return format::InspectHeader({seed_, head->head, address, generation}, Bytes(offset + at, end - at));
  };
  const uint64_t first = FirstObjectOffset(segment);
  if (RegionWordOf(region).settled() && !header.settled()) {
    Add(where() + " is not settled, and its region says that it is");
  }

  if (const auto use = format::UseOfSegment(Bytes(offset, g_.segment_size), generation);
      use != format::SegmentUse::kOpened) {
    if (use == format::SegmentUse::kDamaged) {
      Add(where() + (header.NotYet(generation) ? " has objects and no header" : " has a damaged header"));
    } else if (segment == 0 && report_.needs_recovery) {
      ++shard_.regions_unopened;
    } else if (segment == 0) {
      Add("region " + std::to_string(region) + " is linked, and was never opened");
    }
    walked_.opened_all = false;
    return;
  }
  if (!walked_.opened_all) {
    Add(where() + " is in use, and one before it is not");
    return;
  }
  const bool open = header.Is(SegmentState::kOpen);
  const bool sealed = header.Is(SegmentState::kSealed);
  const bool settled = header.settled();
  const bool copying = header.Is(SegmentState::kCopies);
  head->segments.copying += copying ? 1 : 0;
  head->segments.open += open ? 1 : 0;
  head->segments.sealed += sealed ? 1 : 0;
  head->segments.settled += settled ? 1 : 0;
  if (!open && !sealed && !settled && !copying) Add(where() + " is in a state that there is not");
  if (header.copies() && header.first_version != 0) Add(where() + " holds copies, and has a first version");
  if (header.oldest_version() >= shard_.version_limit) Add(where() + " has versions over the shard's limit");
  if (segment > 0 && header.first_version <= walked_.segment_first && !header.copies()) {
    Add(where() + " has older versions than the one before it");
  }
  walked_.segment_first = header.first_version;
  if (!header.copies() && (!walked_.any || header.first_version >= walked_.newest_first)) {
    walked_.any = true;
    walked_.newest_first = header.first_version;
    walked_.newest_is_open = open;
  }

  const auto mark = header.Marked(g_.segment_size);
  if (!mark && header.mark != 0) Add(where() + " has a damaged mark");
  bool mark_met = false;
  const auto walk_from = [&](uint64_t at) {
    uint64_t chunk_end = 0;  // of the last chunk
    while (at < g_.segment_size) {
      mark_met |= at == mark;
      const bool in_chunk = at < chunk_end;
      const ObjectView object = object_at(at, in_chunk ? chunk_end : g_.segment_size);
      // No header in a chunk leads out of it, whatever its client has written there.
      const bool is_none = object.state == ObjectState::kNothing || object.header.version < header.oldest_version() ||
                           (in_chunk && !object.header.is_value());
      if (is_none) {
        if (!in_chunk) break;
        at = chunk_end;  // the rest of a chunk: what a client put there, or a crash cut off; no entry may lead there
        continue;
      }
      if (object.header.is_chunk()) {
        ++head->chunks;
        chunk_end = at + SpaceOf(object.header);
        at += format::kChunkObjectsAt;
        chunks_[offset + at] = {offset + chunk_end, chunk_end - at, chunk_end - at, false};
        continue;
      }
      ++head->objects;
      at += SpaceOf(object.header);
    }
    return at;
  };
  uint64_t end = walk_from(first);
  if (mark && *mark >= first && *mark < end && !mark_met) Add(where() + " has a mark where no object begins");
  if (open && mark && *mark > end) {  // where objects were
    Add(where() + " has damaged bytes between its objects, at byte " + std::to_string(end));
    end = walk_from(*mark);
  }
  const auto rest = Bytes(offset + end, g_.segment_size - end);
  if (const bool states_end = !open && !copying && header.end >= first && header.end <= g_.segment_size; states_end) {
    // It may state more than there is: if a crash came between sealing it and opening the next one.
    if (header.end < end || !IsZero(rest.first(header.end - end))) {
      Add(where() + " has damaged bytes between its objects, at byte " + std::to_string(end));
      end = std::max(end, header.end);
    }
  } else if (!IsZero(rest)) {
    // In the open segment it is what the crash cut off. (Else it is something damaged, with good objects behind it.)
    // Copies that were cut off stay until the cleaner goes on there.
    if ((open && report_.needs_recovery) || copying) {
      ++shard_.cut_off;
    } else {
      Add(where() + " has damaged bytes after its objects, at byte " + std::to_string(end));
    }
    const auto last = std::find_if(rest.rbegin(), rest.rend(), [](std::byte b) { return b != std::byte{0}; });
    end += AlignUp(static_cast<uint64_t>(rest.rend() - last), format::kGranuleBytes);
  }
  head->object_bytes += end - first;
}

uint32_t ShardInspector::RegionAt(uint32_t head, LogAddress address) const {
  const uint64_t head_in_shard = head - FirstHead();  // huge if it is an earlier shard's
  const uint32_t slot = g_.SlotOf(address);
  if (head_in_shard >= g_.heads_per_shard || slot >= g_.slots_per_head() || address.none()) return kNoRegion;
  return regions_[head_in_shard * g_.slots_per_head() + slot];
}

std::span<const std::byte> ShardInspector::BytesAt(uint32_t head, LogAddress address) const {
  const uint32_t region = RegionAt(head, address);
  if (region == kNoRegion) return {};
  const uint64_t in_region = g_.OffsetInRegion(address);
  const uint64_t offset = g_.RegionOffset(region) + in_region;
  const uint64_t in_segment = g_.segment_size - in_region % g_.segment_size;
  const auto chunk = FindChunk(chunks_, offset);
  return Bytes(offset, chunk == chunks_.end() ? in_segment : std::min(in_segment, chunk->second.end - offset));
}

ShardInspector::Chunk* ShardInspector::ChunkOf(uint32_t head, LogAddress address) {
  const uint32_t region = RegionAt(head, address);
  if (region == kNoRegion) return nullptr;
  const auto found = FindChunk(chunks_, g_.RegionOffset(region) + g_.OffsetInRegion(address));
  return found == chunks_.end() ? nullptr : &found->second;
}

void ShardInspector::CountLive(uint32_t head, LogAddress address, uint64_t space) {
  if (Chunk* const chunk = ChunkOf(head, address)) {
    chunk->claims_more |= space > chunk->not_live;
    space = std::min(space, chunk->not_live);
    chunk->not_live -= space;
  }
  shard_.live_bytes += space;
}

format::Place ShardInspector::PlaceOf(uint32_t head, LogAddress address) const {
  const uint32_t region = RegionAt(head, address);
  return {seed_, head, address, region == kNoRegion ? 0 : RegionWordOf(region).generation()};
}

bool ShardInspector::CountsAsSettled(uint32_t head, LogAddress address) const {
  const uint64_t begin = AlignDown(g_.OffsetInRegion(address), g_.segment_size);
  const uint32_t region = RegionAt(head, address);
  const auto header = LoadAs<SegmentHeader>(Bytes(g_.RegionOffset(region) + begin, sizeof(SegmentHeader)));
  return header.settled() || g_.OffsetInRegion(address) - begin < header.Marked(g_.segment_size).value_or(0);
}

ObjectView ShardInspector::Whole(uint32_t head, LogAddress address) {
  ObjectView view = Header(head, address);
  if (view.state == ObjectState::kNothing) return view;
  const uint64_t space = SpaceOf(view.header);
  Chunk* const chunk = ChunkOf(head, address);
  uint64_t& budget = chunk != nullptr ? chunk->budget : budget_;
  bool& spent = chunk != nullptr ? chunk->claims_more : budget_spent_;
  spent |= space > budget;
  unread_ = spent;
  if (spent) return view;
  budget -= space;
  view = format::InspectObject(PlaceOf(head, address), BytesAt(head, address));
  if (view.state == ObjectState::kWhole) {
    ++shard_.verified;
    shard_.verified_bytes += space;
  }
  return view;
}

}  // namespace erda::inspect
