#include "server/verification.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "format/superblock.h"
#include "format/version_limit.h"

namespace erda::server {

using format::EntryMeta;
using format::EntryWord;
using format::IndexEntry;
using format::kNeighbourhood;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;
using format::RegionWord;
using format::SegmentHeader;
using format::SegmentState;
using index::Slot;

namespace {

// More versions than a shard gives out, and more regions than it links, while a page of its file stays unwritten. What
// a client knows of a version that got lost must never be true of another one.
constexpr uint64_t kVersionLeap = uint64_t{1} << 38;
static_assert(kVersionLeap % format::kVersionStride == 0);
constexpr uint32_t kGenerationLeap = 1 << 16;

constexpr const char* kSalvage =
    ": after a power cut the index cannot be found again; 'erda-pool salvage' reads the values without it";

Status Refuse(const std::string& what) { return {Code::kCorruption, what + kSalvage}; }

}  // namespace

Verification::Verification(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard)
    : nvm_(nvm),
      geometry_(geometry),
      pool_seed_(pool_seed),
      shard_(shard),
      regions_(geometry.regions_per_shard),
      heads_(geometry.heads_per_shard, std::vector<uint32_t>(geometry.slots_per_head(), kNoRegion)),
      runs_(geometry.runs_max()),
      layout_(geometry, shard, runs_) {}

// --- The structure

Status Verification::Look() {
  LookAtRegions();
  if (auto status = LookAtGenerations(); !status.ok()) return status;
  if (auto status = LookAtRuns(); !status.ok()) return status;
  return LookAtBlocks();
}

// A region is in the slot of a head that its word says, or that its objects say: each of them verifies in one place
// only. Of two regions that claim one slot, more headers of segments speak for the one that was there last.
void Verification::LookAtRegions() {
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    newest_generation_ = std::max(newest_generation_, WordOf(region).generation());
    for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
      const uint64_t identity = HeaderOf(region, segment).identity;
      const auto generation = static_cast<uint32_t>(identity);
      if (identity == SegmentHeader::Identity(generation))
        newest_generation_ = std::max(newest_generation_, generation);
    }
    const Region by_word = FromWord(region);
    const Region by_objects = FromObjects(region);
    const bool objects = by_objects.linked && (!by_word.linked || by_objects.score > by_word.score);
    regions_[number] = objects ? by_objects : by_word;
    if (!regions_[number].linked) continue;
    regions_[number].named.resize(geometry_.segments_per_region());
    uint32_t& place = heads_[regions_[number].head][regions_[number].slot];
    if (place != kNoRegion) {
      const auto rank = [](const Region& r) { return std::pair(r.score, r.generation); };
      const bool is_better = rank(regions_[number]) > rank(regions_[place]);
      regions_[is_better ? place : number].linked = false;
      if (!is_better) continue;
    }
    place = number;
  }
}

// Each Repair leaps, also one after which the server did not come up. A generation must never come again: an object of
// the first one would verify in the second.
Status Verification::LookAtGenerations() const {
  if (newest_generation_ < UINT32_MAX - 2 * kGenerationLeap) return {};
  return {Code::kCorruption,
          "a shard has used up the generations of its regions, of which each start that verifies the pool takes 65536: "
          "'erda-pool salvage' reads the values into a dump, which can be loaded into a new pool"};
}

Verification::Region Verification::FromWord(uint32_t region) const {
  const RegionWord word = WordOf(region);
  Region found;
  found.generation = word.generation();
  if (!word.IsWholeLink()) return found;
  const uint32_t head = word.HeadIn(geometry_) - FirstHead();  // huge if it is an earlier shard's
  found.slot = word.SlotIn(geometry_);
  found.linked = head < geometry_.heads_per_shard && found.slot < geometry_.slots_per_head();
  found.head = head;
  found.score = CountHeaders(region, found.generation);
  return found;
}

// The region was linked after the word that the disk has. A header says in which generation, and where the first object
// of a segment verifies, there it is.
Verification::Region Verification::FromObjects(uint32_t region) const {
  const RegionWord word = WordOf(region);
  Region found;
  if (word == RegionWord::OfIndex(word.generation(), word.run())) return found;
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    const SegmentHeader header = HeaderOf(region, segment);
    if (!header.OpenedAfter(word.generation())) continue;
    found.generation = static_cast<uint32_t>(header.identity);
    const uint64_t in_segment = format::FirstObjectOffset(segment);
    const uint64_t in_region = segment * geometry_.segment_size + in_segment;
    const auto bytes = nvm_.Bytes(SegmentOffset(region, segment) + in_segment, geometry_.segment_size - in_segment);
    for (found.head = 0; found.head < geometry_.heads_per_shard; ++found.head) {
      for (found.slot = 0; found.slot < geometry_.slots_per_head(); ++found.slot) {
        const LogAddress address = geometry_.AddressOf(found.slot, in_region);
        const format::Place place{pool_seed_, FirstHead() + found.head, address, found.generation};
        if (format::InspectHeader(place, bytes).state == ObjectState::kNothing) continue;
        found.linked = true;
        found.score = CountHeaders(region, found.generation);
        return found;
      }
    }
  }
  return found;
}

uint32_t Verification::CountHeaders(uint32_t region, uint32_t generation) const {
  uint32_t count = 0;
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    count += HeaderOf(region, segment).identity == SegmentHeader::Identity(generation) ? 1 : 0;
  }
  return count;
}

// A run is the index's for good, so a word that names one is true, whatever its age.
Status Verification::LookAtRuns() {
  uint32_t runs = 0;
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    const RegionWord word = WordOf(region);
    if (word != RegionWord::OfIndex(word.generation(), word.run())) continue;
    if (word.run() >= runs_.size() || runs_[word.run()] != 0) {
      return Refuse("the region table names run " + std::to_string(word.run()) + " of the index twice, or too far on");
    }
    runs_[word.run()] = region + 1;
    ++runs;
  }
  if (std::find(runs_.begin(), runs_.begin() + runs, 0U) != runs_.begin() + runs) {
    return Refuse("the region table lacks a run of the index");
  }
  known_blocks_ = geometry_.first_blocks() + runs * (geometry_.run_slots() >> geometry_.block_shift);
  return {};
}

Status Verification::LookAtBlocks() {
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, blocks);
  const format::CheckedWord record(nvm_.Load64(at));
  const uint64_t blocks = record.raw() == 0 ? geometry_.first_blocks() : record.number();
  if (record.damaged() || blocks < geometry_.first_blocks() || blocks > geometry_.blocks_max()) {
    return Refuse("the record of a shard is damaged");
  }
  if (blocks > known_blocks_)
    return Refuse("the index of a shard has more blocks than its region table has places for");
  layout_.SetBlocks(blocks);
  layout_.SetReaches(RecordedReaches());
  return {};
}

// --- The index

Status Verification::Repair(const TellDamaged& tell, RecoveryReport* report) {
  RaiseBlocks();
  JudgeSlots(tell);
  for (const Misplaced& misplaced : misplaced_) MoveHome(misplaced, tell);
  RepairRegions();
  StoreRecord();
  nvm_.Fence();
  report_.shards_verified = 1;
  *report = report_;
  // Before a version is given out: the next power cut must not bring the old limit back, from which the same leap would
  // lead to the same versions.
  return nvm_.Sync(format::kShardRecordsOffset, geometry_.index_offset - format::kShardRecordsOffset);
}

// Blocks behind the record's number hold entries if a split stored the number in a page that got lost. What stands
// there and leads to nothing is a rest of what the region held before: zeroes of it got lost.
void Verification::RaiseBlocks() {
  uint64_t blocks = layout_.blocks();
  for (Slot slot = layout_.slots(); slot < layout_.FirstOf(known_blocks_); ++slot) {
    const IndexEntry entry = At(slot);
    if (entry.word == 0) continue;
    if (Judge(entry).verdict == Verdict::kSound) {
      blocks = std::max(blocks, layout_.BlockWith(slot) + 1);
    } else {
      StoreEntry(slot, EntryWord());
    }
  }
  layout_.SetBlocks(blocks);
  // Runs behind the last one in use, but for one, count as damage when a pool is opened. They hold nothing.
  const uint64_t runs_kept = layout_.grown() ? layout_.RunOf(blocks - 1) + 1 : 0;
  for (uint64_t run = runs_kept; run < runs_.size(); ++run) runs_[run] = 0;
  if (blocks == geometry_.first_blocks()) return;
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, blocks);
  nvm_.Store64(at, format::CheckedWord::Of(blocks).raw());
  nvm_.Persist(at, sizeof(uint64_t));
}

void Verification::JudgeSlots(const TellDamaged& tell) {
  // By tag, of the slots before in the same block: where another entry of the same key can be.
  std::unordered_multimap<uint32_t, Twin> before;
  report_.index_slots = layout_.slots();
  for (Slot slot = 0; slot < layout_.slots(); ++slot) {
    if (slot == layout_.FirstOf(layout_.BlockWith(slot))) before.clear();
    if (At(slot).word == 0) continue;
    const Twin own{slot, JudgeSlot(slot, tell)};
    const IndexEntry entry = At(slot);
    if (entry.word == 0 || (!misplaced_.empty() && misplaced_.back().slot == slot)) continue;
    const auto [from, to] = before.equal_range(entry.entry_meta().tag());
    const bool ends = std::any_of(from, to, [&](const auto& at) {
      const Twin& other = at.second;
      if (other.key_hash && own.key_hash && *other.key_hash != *own.key_hash) return false;
      return At(other.slot).word != 0 && EndTwin(other.slot, slot, tell);
    });
    if (!ends) before.emplace(entry.entry_meta().tag(), own);
  }
  if (layout_.reaches() != RecordedReaches()) {
    const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, reaches);
    nvm_.Store64(at, format::CheckedWord::Of(layout_.reaches().number()).raw());
    nvm_.Persist(at, sizeof(uint64_t));
  }
}

format::Reaches Verification::RecordedReaches() const {
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, reaches);
  return format::ReachesIn(format::CheckedWord(nvm_.Load64(at)));
}

// An entry is beyond its key's window if the page of the record is older than the entry's. The window was as large.
void Verification::RaiseReach(Slot slot, const IndexEntry& entry, uint64_t key_hash) {
  if (entry.entry_meta().distance() != EntryMeta::kFar || layout_.BlockOf(key_hash) != layout_.BlockWith(slot)) return;
  while (!layout_.WindowOf(key_hash).Has(slot)) layout_.SetReaches(layout_.reaches().Raised(key_hash));
}

// The hash of its key, if that is known.
std::optional<uint64_t> Verification::JudgeSlot(Slot slot, const TellDamaged& tell) {
  const IndexEntry entry = At(slot);
  const Judged judged = Judge(entry);
  std::optional<uint64_t> key_hash;
  if (judged.version.state != ObjectState::kNothing && Fits(entry, judged.version)) {
    key_hash = judged.version.header.key_hash;
    RaiseReach(slot, entry, *key_hash);
  }
  if (judged.version.state != ObjectState::kNothing && judged.version.header.version < VersionsEnd()) {
    newest_version_ = std::max(newest_version_, judged.version.header.version);
  }
  ++report_.objects;
  const bool unsettled = !entry.entry_word().settled();
  report_.unsettled += unsettled ? 1 : 0;
  switch (judged.verdict) {
    case Verdict::kGone:
      StoreEntry(slot, EntryWord());
      ++(judged.version.state == ObjectState::kWhole ? report_.deletes_finished : report_.dropped);
      return key_hash;
    case Verdict::kSound:
      if (judged.word != entry.entry_word()) StoreEntry(slot, judged.word);
      if (unsettled) ++(judged.went_back ? report_.taken_back : report_.settled);
      break;
    case Verdict::kDamaged:
      ++report_.damaged;
      tell(judged.version.state == ObjectState::kNothing ? std::string_view() : judged.version.key);
      if (!IsInPlace(slot, entry, judged)) {  // no get comes by
        StoreEntry(slot, EntryWord());
        return key_hash;
      }
      if (unsettled) StoreEntry(slot, entry.entry_word().Settled());
      break;
  }
  MarkNamed(geometry_.HeadOf(entry.entry_meta().tag()), judged.word.new_address());
  if (!IsInPlace(slot, entry, judged)) misplaced_.push_back({slot, {judged.word.raw(), entry.meta}});
  return key_hash;
}

// As recovery_table.h, but that nothing is believed of what is settled, or of the old version.
Verification::Judged Verification::Judge(const IndexEntry& entry) const {
  const EntryWord word = entry.entry_word();
  const uint32_t tag = entry.entry_meta().tag();
  Judged judged;
  judged.word = word.Settled();
  if (geometry_.ShardOf(tag) != shard_) return judged;
  const uint32_t head = geometry_.HeadOf(tag);
  const ObjectView newest = Inspect(head, word.new_address());
  const bool fits = newest.state != ObjectState::kNothing && Fits(entry, newest);
  const bool in_its_slot = geometry_.OffsetInRegion(word.new_address()) == format::kTombstoneSlotOffset;
  const ObjectView old = word.settled() ? ObjectView() : Inspect(head, word.old_address());
  const bool old_is_whole = old.state == ObjectState::kWhole && old.header.is_value() && Fits(entry, old);
  if (!fits) {
    if (old_is_whole) {  // the key is known by it
      judged.version = old;
      judged.version.header.version = 0;  // of the newest nobody knows it
    }
    return judged;
  }
  judged.version = newest;
  if (!newest.header.is_value()) {
    const bool deleted = !word.settled() && newest.state == ObjectState::kWhole && in_its_slot;
    if (deleted) judged.verdict = Verdict::kGone;
    return judged;
  }
  if (in_its_slot) return judged;
  if (newest.state == ObjectState::kWhole) {
    judged.verdict = Verdict::kSound;
    return judged;
  }
  if (word.settled()) return judged;
  // It may never have been whole: back to the newest one before it that is.
  ObjectView older = newest;
  for (LogAddress at(newest.header.previous); !at.none() && at != word.old_address();) {
    const ObjectView view = Inspect(head, at);
    const bool is_older =
        view.state != ObjectState::kNothing && view.key == newest.key && view.header.version < older.header.version;
    if (!is_older || (old_is_whole && view.header.version <= old.header.version)) break;
    if (view.state == ObjectState::kWhole) return {Verdict::kSound, word.TakenBackTo(at, true), view, true};
    older = view;
    at = LogAddress(view.header.previous);
  }
  if (old_is_whole && old.key == newest.key) return {Verdict::kSound, word.TakenBackToOld(), old, true};
  if (word.old_address().none()) judged.verdict = Verdict::kGone;
  return judged;
}

bool Verification::Fits(const IndexEntry& entry, const ObjectView& view) const {
  return !view.header.is_chunk() && EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag() &&
         geometry_.ShardOf(view.header.key_hash) == shard_;
}

bool Verification::IsInPlace(Slot slot, const IndexEntry& entry, const Judged& judged) const {
  const EntryMeta meta = entry.entry_meta();
  const bool known = judged.version.state != ObjectState::kNothing && Fits(entry, judged.version);
  if (known) return layout_.IsPlaceOf(judged.version.header.key_hash, slot, meta.distance());
  const uint64_t block = layout_.BlockWith(slot);
  if (layout_.BlockOf(meta.tag()) != block) return false;
  const bool near = meta.distance() < kNeighbourhood && slot - layout_.FirstOf(block) >= meta.distance();
  return near || meta.distance() == EntryMeta::kFar;
}

// They are left by a move of which one page arrived and another did not. What is newer stays, even if it is damaged: a
// get never falls back past what was acknowledged. Of what has no header nobody knows the age, and what is whole stays.
bool Verification::EndTwin(Slot other, Slot slot, const TellDamaged& tell) {
  const Judged first = Judge(At(other));
  const Judged second = Judge(At(slot));
  const bool first_known = first.version.state != ObjectState::kNothing;
  const bool second_known = second.version.state != ObjectState::kNothing;
  if (!first_known && !second_known) return false;
  if (first_known && second_known && first.version.key != second.version.key) return false;
  if (first_known != second_known) {  // another key may have the same tag: then its entry stands elsewhere
    const Slot unknown = first_known ? slot : other;
    const uint64_t key_hash = (first_known ? first : second).version.header.key_hash;
    if (!layout_.IsPlaceOf(key_hash, unknown, At(unknown).entry_meta().distance())) return false;
  }
  const bool keep_first =
      first_known && (!second_known || first.version.header.version >= second.version.header.version);
  StoreEntry(keep_first ? slot : other, EntryWord());
  ++report_.moves_undone;
  if (first_known != second_known) tell((first_known ? first : second).version.key);
  return keep_first;
}

// Where the entry stands now. Making room for another one may have moved it: by less than a neighbourhood, in its
// block.
std::optional<Slot> Verification::FindAgain(const Misplaced& misplaced) const {
  const EntryMeta meta = misplaced.entry.entry_meta();
  const uint64_t block = layout_.BlockWith(misplaced.slot);
  const Slot end = std::min(misplaced.slot + kNeighbourhood, layout_.FirstOf(block + 1));
  for (Slot slot = misplaced.slot; slot < end; ++slot) {
    const IndexEntry entry = At(slot);
    const EntryMeta found = entry.entry_meta();
    const bool same_home = found.distance() - meta.distance() == slot - misplaced.slot;  // as it says
    if (entry.word == misplaced.entry.word && found.tag() == meta.tag() && same_home) return slot;
  }
  return std::nullopt;
}

// True if the key has an entry where gets look for it. The newer of the two versions stands there on return.
bool Verification::KeepNewer(const Judged& judged) {
  const uint64_t hash = judged.version.header.key_hash;
  const auto window = layout_.WindowOf(hash);
  for (Slot there = window.begin; there < window.end; ++there) {
    const IndexEntry other = At(there);
    const EntryMeta meta = other.entry_meta();
    if (other.word == 0 || meta.tag() != EntryMeta::TagOf(hash)) continue;
    if (!layout_.IsPlaceOf(hash, there, meta.distance())) continue;
    const Judged present = Judge(other);
    const bool known = present.version.state != ObjectState::kNothing;
    if (known && present.version.key != judged.version.key) continue;
    if (!known || present.version.header.version < judged.version.header.version) StoreEntry(there, judged.word);
    return true;
  }
  return false;
}

// To where gets look for it; it stands there before it goes from here. A key for which there is no place is told.
void Verification::MoveHome(const Misplaced& misplaced, const TellDamaged& tell) {
  ++report_.moves_undone;
  const Judged judged = Judge(misplaced.entry);
  const uint64_t hash = judged.version.header.key_hash;
  if (KeepNewer(judged)) {
    if (const auto slot = FindAgain(misplaced)) StoreEntry(*slot, EntryWord());
    return;
  }
  uint64_t displacements = 0;
  uint64_t blocks = 0;
  uint64_t reaches = 0;
  std::vector<uint32_t> runs(runs_.size());
  index::Index index(nvm_, geometry_, shard_, {&displacements, &blocks, &reaches, runs});
  std::vector<uint32_t> regions;
  for (const uint32_t run : runs_) {
    if (run != 0) regions.push_back(run - 1);
  }
  const bool taken_up = index.TakeUp(regions).ok();
  std::optional<Slot> room;
  if (taken_up) {
    const auto near = index.MakeRoom(hash);
    room = near.ok() ? std::optional(*near) : index.MakeFarRoom(hash);
    layout_.SetReaches(index.layout().reaches());
  }
  const auto slot = FindAgain(misplaced);  // after MakeRoom, which moves other entries
  if (room) {
    index.Describe(*room, hash, SpaceOf(judged.version.header));
    nvm_.Fence();
    StoreEntry(*room, judged.word);
  } else {
    ++report_.damaged;
    tell(judged.version.key);
  }
  if (slot) StoreEntry(*slot, EntryWord());
}

// --- The log

// What is in a head is needed, or will be cleaned. All else becomes zeroes before it is used: a page of an earlier use
// may have come back.
void Verification::RepairRegions() {
  newest_generation_ += kGenerationLeap;
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    if (std::find(runs_.begin(), runs_.end(), region + 1) != runs_.end()) continue;
    Region& found = regions_[number];
    if (found.linked) {
      RepairSegments(region);
      const bool used = HeaderOf(region, 0).identity == SegmentHeader::Identity(found.generation);
      if (used) {
        StoreWord(region, RegionWord::Linked(geometry_, found.generation, FirstHead() + found.head, found.slot));
        continue;
      }
    }
    report_.regions_unlinked += WordOf(region).linked() ? 1 : 0;
    StoreWord(region, RegionWord::Emptied(newest_generation_));
  }
}

// All segments up to the last one that is used count as full and settled. Those behind it, and the tombstone slot, are
// zeroes: the log may go on there.
void Verification::RepairSegments(uint32_t region) {
  const Region& found = regions_[geometry_.NumberInShard(region)];
  const uint64_t segments = geometry_.segments_per_region();
  const auto is_open = [&](uint64_t segment) {
    return HeaderOf(region, segment).identity == SegmentHeader::Identity(found.generation);
  };
  const uint64_t versions_end = VersionsEnd();
  uint64_t used = 0;
  bool copies = true;  // a region is one of copies, or of puts
  for (uint64_t segment = 0; segment < segments; ++segment) {
    if (found.named[segment] || is_open(segment)) used = segment + 1;
    if (!is_open(segment)) continue;
    copies &= HeaderOf(region, segment).copies();
    const uint64_t first = HeaderOf(region, segment).first_version;
    if (first < versions_end) newest_version_ = std::max(newest_version_, first);
  }
  uint64_t first_version = 1;
  for (uint64_t segment = 0; segment < used; ++segment) {
    SegmentHeader header = HeaderOf(region, segment);
    const bool was_open = is_open(segment);
    const bool known = was_open && header.first_version != 0 && header.first_version < versions_end;
    if (known) first_version = header.first_version;
    const bool has_end = was_open && header.end >= format::FirstObjectOffset(segment) &&
                         header.end <= geometry_.segment_size && header.end % format::kGranuleBytes == 0;
    header = {SegmentHeader::Identity(found.generation),
              static_cast<uint64_t>(SegmentState::kSettled),
              copies ? 0 : first_version,
              has_end ? header.end : geometry_.segment_size,
              0,
              {}};
    nvm_.Write(SegmentOffset(region, segment), BytesOf(header));
    nvm_.Persist(SegmentOffset(region, segment), sizeof(header));
  }
  if (used > 0) nvm_.ZeroOut(SegmentOffset(region, 0) + format::kTombstoneSlotOffset, format::kTombstoneSlotBytes);
  nvm_.ZeroOut(SegmentOffset(region, used), (segments - used) * geometry_.segment_size);
}

// A version from there on is no shard's: a client forged the header in its own chunk, or it is damaged. To believe it
// would end the numbers that are left.
uint64_t Verification::VersionsEnd() const {
  const auto limit = format::VersionLimitIn(
      nvm_.Load64(format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, version_limit)));
  return limit.value_or(UINT64_MAX / 4) + kVersionLeap;
}

void Verification::StoreRecord() {
  const uint64_t at = format::ShardRecordOffset(shard_);
  auto record = LoadAs<format::ShardRecord>(nvm_.Bytes(at, sizeof(format::ShardRecord)));
  const uint64_t before = std::max(format::VersionLimitIn(record.version_limit).value_or(0), newest_version_);
  record.version_limit =
      format::VersionLimitWord((before / format::kVersionStride + 1) * format::kVersionStride + kVersionLeap);
  uint64_t keys = 0;
  for (Slot slot = 0; slot < layout_.slots(); ++slot) keys += At(slot).word != 0 ? 1 : 0;
  record.keys = format::CheckedWord::Of(keys).raw();
  record.move = 0;
  nvm_.Write(at, BytesOf(record));
  nvm_.Persist(at, sizeof(record));
}

// --- Bytes

SegmentHeader Verification::HeaderOf(uint32_t region, uint64_t segment) const {
  return LoadAs<SegmentHeader>(nvm_.Bytes(SegmentOffset(region, segment), sizeof(SegmentHeader)));
}

RegionWord Verification::WordOf(uint32_t region) const {
  return RegionWord(nvm_.Load64(format::kRegionTableOffset + region * sizeof(uint64_t)));
}

void Verification::StoreWord(uint32_t region, RegionWord word) {
  if (WordOf(region) == word) return;
  const uint64_t at = format::kRegionTableOffset + region * sizeof(uint64_t);
  nvm_.Store64(at, word.raw());
  nvm_.Persist(at, sizeof(uint64_t));
}

IndexEntry Verification::At(Slot slot) const {
  const uint64_t at = layout_.SlotOffset(slot);
  return {nvm_.Load64(at), nvm_.Load64(at + sizeof(uint64_t))};
}

void Verification::StoreEntry(Slot slot, EntryWord word) {
  const uint64_t at = layout_.SlotOffset(slot);
  nvm_.Store64(at, word.raw());
  nvm_.Persist(at, sizeof(uint64_t));
}

const Verification::Region* Verification::Find(uint32_t head, LogAddress address, uint32_t* number) const {
  const uint32_t slot = geometry_.SlotOf(address);
  const uint32_t in_shard = head - FirstHead();
  if (address.none() || in_shard >= heads_.size() || slot >= geometry_.slots_per_head()) return nullptr;
  *number = heads_[in_shard][slot];
  return *number == kNoRegion ? nullptr : &regions_[*number];
}

ObjectView Verification::Inspect(uint32_t head, LogAddress address) const {
  uint32_t number = 0;
  const Region* const region = Find(head, address, &number);
  if (region == nullptr) return {};
  const uint64_t offset = geometry_.OffsetInRegion(address);
  const uint64_t in_segment = offset & (geometry_.segment_size - 1);
  if (in_segment < sizeof(SegmentHeader)) return {};
  const auto bytes = nvm_.Bytes(geometry_.RegionOffset(geometry_.RegionOf(shard_, number)) + offset,
                                geometry_.segment_size - in_segment);
  return format::InspectObject({pool_seed_, head, address, region->generation}, bytes);
}

void Verification::MarkNamed(uint32_t head, LogAddress address) {
  uint32_t number = 0;
  if (Find(head, address, &number) == nullptr) return;
  regions_[number].named[geometry_.OffsetInRegion(address) / geometry_.segment_size] = true;
}

}  // namespace erda::server
