#include "inspect/inspection.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/log_layout.h"

namespace erda::inspect {

using format::EntryMeta;
using format::EntryWord;
using format::FirstObjectOffset;
using format::Geometry;
using format::IndexEntry;
using format::kNeighbourhood;
using format::kSlotsPerHead;
using format::LogAddress;
using format::ObjectKind;
using format::ObjectState;
using format::ObjectView;
using format::RegionWord;
using format::SegmentHeader;
using format::SegmentState;

namespace {

constexpr uint32_t kNoRegion = UINT32_MAX;

bool IsKind(const ObjectView& view, ObjectKind kind) { return view.header.kind == static_cast<uint8_t>(kind); }

class ShardInspector {
 public:
  ShardInspector(std::span<const std::byte> pool, uint32_t shard, const Options& options, PoolReport* report)
      : pool_(pool),
        g_(report->superblock.geometry),
        seed_(format::PoolSeed(report->superblock.uuid)),
        options_(options),
        regions_(g_.heads_per_shard * kSlotsPerHead, kNoRegion),
        report_(*report) {
    shard_.shard = shard;
  }

  ShardReport Inspect() {
    LookAtRecord();
    LinkRegions();
    for (uint32_t i = 0; i < g_.heads_per_shard; ++i) LookAtHead(i);
    LookAtIndex();
    return std::move(shard_);
  }

 private:
  [[nodiscard]] std::span<const std::byte> Bytes(uint64_t offset, uint64_t size) const {
    return pool_.subspan(offset, size);
  }
  [[nodiscard]] uint64_t FirstHead() const { return uint64_t{shard_.shard} * g_.heads_per_shard; }
  [[nodiscard]] RegionWord RegionWordOf(uint32_t region) const {
    return RegionWord(
        LoadAs<uint64_t>(Bytes(format::kRegionTableOffset + region * sizeof(uint64_t), sizeof(uint64_t))));
  }
  [[nodiscard]] IndexEntry EntryAt(uint64_t slot) const {
    return LoadAs<IndexEntry>(Bytes(g_.SlotOffset(shard_.shard, slot), sizeof(IndexEntry)));
  }

  void Add(Damage damage) {
    ++report_.damage_count;
    damage.shard = shard_.shard;
    if (report_.damage.size() < options_.damage_listed) report_.damage.push_back(std::move(damage));
  }
  void Add(std::string what) {
    Damage damage;
    damage.what = std::move(what);
    Add(std::move(damage));
  }

  void LookAtRecord();
  void LinkRegions();
  void LookAtHead(uint32_t head_in_shard);
  void LookAtSegment(HeadReport* head, uint32_t slot, uint32_t region, uint64_t segment);
  void LookAtIndex();
  void LookAtEntry(uint64_t slot, const IndexEntry& entry);
  void LookAtUnsettled(uint64_t slot, const IndexEntry& entry, const ObjectView& newest);
  [[nodiscard]] std::string FindFault(uint64_t slot, const IndexEntry& entry, const ObjectView& newest) const;
  [[nodiscard]] bool IsKeyOf(uint64_t slot, EntryMeta meta, uint64_t key_hash) const;
  void AddEntry(uint64_t slot, const IndexEntry& entry, std::string what);

  // kNoRegion if no entry can lead there.
  [[nodiscard]] uint32_t RegionAt(uint32_t head, LogAddress address) const;
  // The pool's bytes from an address to the end of its segment; empty if no entry can lead there.
  [[nodiscard]] std::span<const std::byte> BytesAt(uint32_t head, LogAddress address) const;
  [[nodiscard]] format::Place PlaceOf(uint32_t head, LogAddress address) const;
  [[nodiscard]] ObjectView Header(uint32_t head, LogAddress address) const {
    return format::InspectHeader(PlaceOf(head, address), BytesAt(head, address));
  }
  // The segment's header says that what is there is settled.
  [[nodiscard]] bool CountsAsSettled(uint32_t head, LogAddress address) const;
  // With the value, if that can still be read.
  ObjectView Whole(uint32_t head, LogAddress address);

  const std::span<const std::byte> pool_;
  const Geometry& g_;
  const uint32_t seed_;
  const Options& options_;
  std::vector<uint32_t> regions_;  // by head and slot
  PoolReport& report_;
  ShardReport shard_;

  // Of the head at hand.
  struct Walked {
    bool any = false;
    bool opened_all = true;      // of the region at hand, so far
    uint64_t segment_first = 0;  // version of the segment before
    uint64_t newest_first = 0;   // of all segments of the head
    bool newest_is_open = false;
  };
  Walked walked_;
  // Bytes of values that may still be read. In a sound pool no two entries lead to one object, so the log's size is
  // enough; where they do, this keeps the time in bounds.
  uint64_t budget_ = 0;
  bool budget_spent_ = false;
};

void ShardInspector::LookAtRecord() {
  const auto record = LoadAs<format::ShardRecord>(
      Bytes(format::kShardRecordsOffset + shard_.shard * sizeof(format::ShardRecord), sizeof(format::ShardRecord)));
  shard_.version_limit = record.version_limit;
  shard_.keys_at_close = record.keys;
  shard_.index_slots = g_.index_slots;
  shard_.log_bytes = g_.regions_per_shard * g_.region_size;
  budget_ = shard_.log_bytes;
  if (record.version_limit > UINT64_MAX / 2) Add("the shard's record has a limit of versions that none reaches");
  if (record.keys > g_.index_slots) {
    Add("the shard's record counts " + std::to_string(record.keys) + " keys, more than its index has slots");
  }
  const format::MoveWord move(record.move);
  if (move.none()) return;
  if (!move.Fits(g_.index_slots)) {
    Add("the shard's record names a move in its index that cannot be");
    return;
  }
  const IndexEntry first = EntryAt(move.from());
  const bool under_way = first.word != 0 && format::IsMovedCopy(first, EntryAt(move.to()), move.to() - move.from());
  shard_.move = ShardReport::Move{move.from(), move.to(), under_way};
}

void ShardInspector::LinkRegions() {
  const uint32_t first = shard_.shard * g_.regions_per_shard;
  for (uint32_t region = first; region < first + g_.regions_per_shard; ++region) {
    const RegionWord word = RegionWordOf(region);
    if (word == RegionWord::Free(word.generation())) {
      ++shard_.regions_free;
      bool opened = false;
      for (uint64_t at = g_.RegionOffset(region); at < g_.RegionOffset(region + 1); at += g_.segment_size) {
        opened |= LoadAs<SegmentHeader>(Bytes(at, sizeof(SegmentHeader))).OpenedAfter(word.generation());
      }
      if (opened)
        Add("the region table is damaged: region " + std::to_string(region) + " is free, and was opened since");
      continue;
    }
    if (word == RegionWord::Emptied(word.generation())) {
      ++shard_.regions_emptied;
      continue;
    }
    const bool whole = word == RegionWord::Linked(word.generation(), word.head(), word.slot());
    const uint64_t head = word.head() - FirstHead();  // huge if it is an earlier shard's
    if (!whole || head >= g_.heads_per_shard || word.slot() >= kSlotsPerHead ||
        regions_[head * kSlotsPerHead + word.slot()] != kNoRegion) {
      Add("the region table is damaged: region " + std::to_string(region) + " cannot be slot " +
          std::to_string(word.slot()) + " of head " + std::to_string(word.head()));
      continue;
    }
    ++shard_.regions_linked;
    regions_[head * kSlotsPerHead + word.slot()] = region;
  }
}

void ShardInspector::LookAtHead(uint32_t head_in_shard) {
  HeadReport head;
  head.head = static_cast<uint32_t>(FirstHead() + head_in_shard);
  walked_ = {};
  for (uint32_t slot = 0; slot < kSlotsPerHead; ++slot) {
    const uint32_t region = regions_[head_in_shard * kSlotsPerHead + slot];
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
  const auto object_at = [&](uint64_t at) {
    const auto address = LogAddress::At(slot, segment * g_.segment_size + at);
    return format::InspectHeader({seed_, head->head, address, generation}, Bytes(offset + at, g_.segment_size - at));
  };
  const uint64_t first = FirstObjectOffset(segment);

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
  const bool open = header.state == static_cast<uint64_t>(SegmentState::kOpen);
  const bool sealed = header.state == static_cast<uint64_t>(SegmentState::kSealed);
  const bool settled = header.state == static_cast<uint64_t>(SegmentState::kSettled);
  const bool copying = header.state == static_cast<uint64_t>(SegmentState::kCopies);
  head->segments.copying += copying ? 1 : 0;
  head->segments.open += open ? 1 : 0;
  head->segments.sealed += sealed ? 1 : 0;
  head->segments.settled += settled ? 1 : 0;
  if (!open && !sealed && !settled && !copying) Add(where() + " is in a state that there is not");
  if (header.first_version >= shard_.version_limit) Add(where() + " has versions over the shard's limit");
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
      const ObjectView object = object_at(at);
      if (object.state == ObjectState::kNothing || object.header.version < header.first_version) {
        if (at >= chunk_end) break;
        at = chunk_end;  // the rest of a chunk: what a client put there, or a crash cut off; no entry may lead there
        continue;
      }
      if (object.header.is_chunk()) {
        ++head->chunks;
        chunk_end = at + SpaceOf(object.header);
        at += format::kChunkObjectsAt;
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
    Add(where() + " has something damaged between its objects, at byte " + std::to_string(end));
    end = walk_from(*mark);
  }
  const auto rest = Bytes(offset + end, g_.segment_size - end);
  if (const bool states_end = !open && !copying && header.end >= first && header.end <= g_.segment_size; states_end) {
    // It may state more than there is: if a crash came between sealing it and opening the next one.
    if (header.end < end || !IsZero(rest.first(header.end - end))) {
      Add(where() + " has something damaged between its objects, at byte " + std::to_string(end));
      end = std::max(end, header.end);
    }
  } else if (!IsZero(rest)) {
    // In the open segment it is what the crash cut off. (Else it is something damaged, with good objects behind it.)
    // Copies that were cut off stay until the cleaner goes on there.
    if ((open && report_.needs_recovery) || copying) {
      ++shard_.cut_off;
    } else {
      Add(where() + " has something damaged behind its objects, at byte " + std::to_string(end));
    }
    const auto last = std::find_if(rest.rbegin(), rest.rend(), [](std::byte b) { return b != std::byte{0}; });
    end += AlignUp(static_cast<uint64_t>(rest.rend() - last), format::kGranuleBytes);
  }
  head->object_bytes += end - first;
}

uint32_t ShardInspector::RegionAt(uint32_t head, LogAddress address) const {
  const uint64_t head_in_shard = head - FirstHead();  // huge if it is an earlier shard's
  if (head_in_shard >= g_.heads_per_shard || address.none()) return kNoRegion;
  return regions_[head_in_shard * kSlotsPerHead + address.slot()];
}

std::span<const std::byte> ShardInspector::BytesAt(uint32_t head, LogAddress address) const {
  const uint32_t region = RegionAt(head, address);
  const uint64_t offset = address.offset_in_region();
  if (region == kNoRegion || offset >= g_.region_size) return {};
  return Bytes(g_.RegionOffset(region) + offset, g_.segment_size - offset % g_.segment_size);
}

format::Place ShardInspector::PlaceOf(uint32_t head, LogAddress address) const {
  const uint32_t region = RegionAt(head, address);
  return {seed_, head, address, region == kNoRegion ? 0 : RegionWordOf(region).generation()};
}

bool ShardInspector::CountsAsSettled(uint32_t head, LogAddress address) const {
  const uint64_t begin = AlignDown(address.offset_in_region(), g_.segment_size);
  const uint32_t region = RegionAt(head, address);
  const auto header = LoadAs<SegmentHeader>(Bytes(g_.RegionOffset(region) + begin, sizeof(SegmentHeader)));
  return header.state == static_cast<uint64_t>(SegmentState::kSettled) ||
         address.offset_in_region() - begin < header.Marked(g_.segment_size).value_or(0);
}

ObjectView ShardInspector::Whole(uint32_t head, LogAddress address) {
  ObjectView view = Header(head, address);
  if (view.state == ObjectState::kNothing) return view;
  const uint64_t space = SpaceOf(view.header);
  budget_spent_ = budget_spent_ || space > budget_;
  if (budget_spent_) return view;
  budget_ -= space;
  view = format::InspectObject(PlaceOf(head, address), BytesAt(head, address));
  if (view.state == ObjectState::kWhole) {
    ++shard_.verified;
    shard_.verified_bytes += space;
  }
  return view;
}

void ShardInspector::LookAtIndex() {
  for (uint64_t slot = 0; slot < g_.index_slots; ++slot) {
    const IndexEntry entry = EntryAt(slot);
    if (entry.word == 0) continue;
    ++shard_.used_slots;
    // In the middle of a move it stands in two slots, and is one.
    const bool moving = shard_.move && shard_.move->under_way && shard_.move->to == slot;
    if (moving && !report_.needs_recovery) AddEntry(slot, entry, "the key has another entry");
    if (!moving) LookAtEntry(slot, entry);
  }
  if (budget_spent_ || shard_.live_bytes > shard_.object_bytes) Add("several entries of the index lead to one object");
  if (!report_.needs_recovery && shard_.keys_at_close != shard_.used_slots) {
    Add("the shard's record counts " + std::to_string(shard_.keys_at_close) + " keys, and its index has " +
        std::to_string(shard_.used_slots));
  }
}

bool ShardInspector::IsKeyOf(uint64_t slot, EntryMeta meta, uint64_t key_hash) const {
  return meta.tag() == EntryMeta::TagOf(key_hash) && meta.head() == g_.HeadOf(key_hash) &&
         g_.ShardOf(key_hash) == shard_.shard && meta.distance() < kNeighbourhood &&
         g_.HomeOf(key_hash) + meta.distance() == slot;
}

// The key is told by the object's header; if that does not verify, by the bytes where the key would be, if they have
// the entry's hash.
void ShardInspector::AddEntry(uint64_t slot, const IndexEntry& entry, std::string what) {
  const uint32_t head = entry.entry_meta().head();
  const LogAddress address = entry.entry_word().new_address();
  Damage damage;
  damage.what = std::move(what);
  damage.slot = slot;
  damage.head = head;
  damage.address = address.raw();
  const auto bytes = BytesAt(head, address);
  const ObjectView view = Header(head, address);
  if (view.state != ObjectState::kNothing) {
    damage.key = std::string(view.key);
  } else if (bytes.size() >= sizeof(format::ObjectHeader)) {
    const auto header = LoadAs<format::ObjectHeader>(bytes);
    const uint64_t size = header.key_size;
    if (size > 0 && size <= format::kKeyBytesMax && bytes.size() >= format::ChecksumOffset(header.label_size())) {
      const std::string_view key = AsString(bytes.subspan(header.key_offset(), size));
      if (IsKeyOf(slot, entry.entry_meta(), HashKey(key))) damage.key = std::string(key);
    }
  }
  Add(std::move(damage));
}

// What is wrong with an entry whatever state it is in; or nothing.
std::string ShardInspector::FindFault(uint64_t slot, const IndexEntry& entry, const ObjectView& newest) const {
  const EntryMeta meta = entry.entry_meta();
  const LogAddress address = entry.entry_word().new_address();
  if (address.none()) return "the entry leads nowhere";
  if (BytesAt(meta.head(), address).empty()) return "the entry leads out of the log";
  if (newest.state == ObjectState::kNothing) return "the object's header or key is damaged";
  if (HashKey(newest.key) != newest.header.key_hash) return "the object's hash is not its key's";
  if (!IsKeyOf(slot, meta, newest.header.key_hash)) return "the entry leads to another key's object";
  if (newest.header.version >= shard_.version_limit) return "the object's version is over the shard's limit";
  return {};
}

void ShardInspector::LookAtEntry(uint64_t slot, const IndexEntry& entry) {
  const EntryWord word = entry.entry_word();
  const uint32_t head = entry.entry_meta().head();
  const bool tombstone_slot = word.new_address().offset_in_region() == format::kTombstoneSlotOffset;
  const bool read = options_.verify || !word.settled();
  const ObjectView newest = read ? Whole(head, word.new_address()) : Header(head, word.new_address());
  if (std::string fault = FindFault(slot, entry, newest); !fault.empty()) {
    AddEntry(slot, entry, std::move(fault));
    return;
  }
  if (!tombstone_slot) shard_.live_bytes += SpaceOf(newest.header);
  if (!word.settled()) {
    LookAtUnsettled(slot, entry, newest);
    return;
  }
  ++shard_.keys;
  if (tombstone_slot || !IsKind(newest, ObjectKind::kValue)) {
    AddEntry(slot, entry, "the entry is settled, and leads to what is no value");
  } else if (read && !budget_spent_ && newest.state != ObjectState::kWhole) {
    AddEntry(slot, entry, "the value is damaged");
  }
}

// What recovery would find (server/recovery.h).
void ShardInspector::LookAtUnsettled(uint64_t slot, const IndexEntry& entry, const ObjectView& newest) {
  const EntryWord word = entry.entry_word();
  const uint32_t head = entry.entry_meta().head();
  const LogAddress address = word.new_address();
  const bool whole = newest.state == ObjectState::kWhole;
  const ObjectView old = Header(head, word.old_address());
  if (old.state != ObjectState::kNothing) shard_.live_bytes += SpaceOf(old.header);
  if (address.offset_in_region() == format::kTombstoneSlotOffset) {
    ++shard_.tombstones;
    if (!whole || !IsKind(newest, ObjectKind::kTombstone)) AddEntry(slot, entry, "the tombstone is damaged");
    return;
  }
  ++shard_.keys;
  ++(whole ? shard_.whole : shard_.not_whole);
  if (!report_.needs_recovery) {
    AddEntry(slot, entry, "the entry is not settled, in a pool that was closed");
    return;
  }
  if (CountsAsSettled(head, address)) {
    AddEntry(slot, entry, "the entry is not settled, and its segment says that all are");
    return;
  }
  if (whole || word.old_address().none()) return;
  // The version to go back to is one between, if one of them is whole; else the old one, which must be.
  const uint64_t oldest = old.state == ObjectState::kNothing ? 0 : old.header.version;
  ObjectView view = newest;
  for (;;) {
    const LogAddress previous(view.header.previous);
    if (previous.none() || previous == word.old_address()) break;
    const ObjectView before = Whole(head, previous);
    const bool older = before.state != ObjectState::kNothing && before.key == newest.key &&
                       before.header.version < view.header.version && before.header.version > oldest;
    if (!older || budget_spent_) break;
    if (before.state == ObjectState::kWhole) return;
    view = before;
  }
  if (old.state == ObjectState::kNothing || old.key != newest.key || old.header.version >= newest.header.version) {
    AddEntry(slot, entry, "the newest version is not whole, and the one before it is damaged");
  } else if (options_.verify && Whole(head, word.old_address()).state != ObjectState::kWhole && !budget_spent_) {
    AddEntry(slot, entry, "the newest version is not whole, and the value before it is damaged");
  }
}

}  // namespace

Result<PoolReport> InspectPool(std::span<const std::byte> pool, const Options& options) {
  const auto found = format::FindSuperblock(pool);
  if (!found.ok()) return found.status();
  PoolReport report;
  report.superblock = found->superblock;
  report.needs_recovery = found->superblock.clean != 1 || found->other_damaged;
  for (int copy = 0; copy < 2; ++copy) {
    SuperblockCopy& to = report.superblocks[copy];
    const auto bytes = pool.subspan(format::kSuperblockOffsets[copy], sizeof(format::Superblock));
    to.superblock = LoadAs<format::Superblock>(bytes);
    if (copy == found->copy) {
      to.state = SuperblockCopy::State::kCounts;
    } else if (IsZero(bytes)) {
      to.state = SuperblockCopy::State::kNeverWritten;
    } else {
      to.state = found->other_damaged ? SuperblockCopy::State::kNotValid : SuperblockCopy::State::kOlder;
    }
  }
  for (uint32_t shard = 0; shard < report.superblock.geometry.shards; ++shard) {
    ShardReport one = ShardInspector(pool, shard, options, &report).Inspect();
    report.shards.push_back(std::move(one));
  }
  return report;
}

}  // namespace erda::inspect
