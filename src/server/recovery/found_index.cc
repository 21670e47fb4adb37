#include "server/recovery/found_index.h"

#include <algorithm>
#include <string>

#include "format/log_layout.h"
#include "format/superblock.h"

namespace erda::server {

using format::EntryMeta;
using format::RegionWord;
using format::ShardRecord;
using index::Slot;

namespace {

constexpr const char* kSalvage =
    ": after a power cut the index cannot be found again; 'erda-pool salvage' reads the values without it";

Status RefuseIndex(const std::string& what) { return {Code::kCorruption, what + kSalvage}; }

}  // namespace

FoundIndex::FoundIndex(nvm::Writer& nvm, const RegionBytes& bytes, const format::Geometry& geometry, uint32_t shard)
    : nvm_(nvm),
      bytes_(bytes),
      geometry_(geometry),
      shard_(shard),
      runs_(geometry.runs_max()),
      layout_(geometry, shard, runs_) {}

Status FoundIndex::Look() {
  if (auto status = LookAtRuns(); !status.ok()) return status;
  return LookAtBlocks();
}

// A region that is a run stays one for good. So a word that names a run is true, even if it is old.
Status FoundIndex::LookAtRuns() {
  uint32_t runs = 0;
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(shard_, number);
    const RegionWord word = bytes_.WordOf(region);
    if (word != RegionWord::OfIndex(word.generation(), word.run())) continue;
    if (word.run() >= runs_.size() || runs_[word.run()] != 0) {
      return RefuseIndex("the region table names run " + std::to_string(word.run()) +
                         " of the index twice, or too far on");
    }
    runs_[word.run()] = region + 1;
    ++runs;
  }
  if (std::find(runs_.begin(), runs_.begin() + runs, 0U) != runs_.begin() + runs) {
    return RefuseIndex("the region table lacks a run of the index");
  }
  known_blocks_ = geometry_.first_blocks() + runs * (geometry_.run_slots() >> geometry_.block_shift);
  return {};
}

Status FoundIndex::LookAtBlocks() {
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(ShardRecord, blocks);
  const format::CheckedWord record(nvm_.Load64(at));
  const uint64_t blocks = record.raw() == 0 ? geometry_.first_blocks() : record.number();
  if (record.damaged() || blocks < geometry_.first_blocks() || blocks > geometry_.blocks_max()) {
    return RefuseIndex("the record of a shard is damaged");
  }
  if (blocks > known_blocks_) {
    return RefuseIndex("the index of a shard has more blocks than its region table has places for");
  }
  layout_.SetBlocks(blocks);
  layout_.SetReaches(RecordedReaches());
  return {};
}

bool FoundIndex::IsRun(uint32_t region) const {
  return std::find(runs_.begin(), runs_.end(), region + 1) != runs_.end();
}

std::vector<uint32_t> FoundIndex::RunRegions() const {
  std::vector<uint32_t> regions;
  for (const uint32_t run : runs_) {
    if (run != 0) regions.push_back(run - 1);
  }
  return regions;
}

format::IndexEntry FoundIndex::At(Slot slot) const {
  const uint64_t at = layout_.SlotOffset(slot);
  return {nvm_.Load64(at), nvm_.Load64(at + sizeof(uint64_t))};
}

bool FoundIndex::IsInPlace(Slot slot, const format::IndexEntry& entry, std::optional<uint64_t> key_hash) const {
  const EntryMeta meta = entry.entry_meta();
  if (key_hash) return layout_.IsPlaceOf(*key_hash, slot, meta.distance());
  const uint64_t block = layout_.BlockWith(slot);
  if (layout_.BlockOf(meta.tag()) != block) return false;
  const bool near = meta.distance() < format::kNeighbourhood && slot - layout_.FirstOf(block) >= meta.distance();
  return near || meta.distance() == EntryMeta::kFar;
}

// When a server opens a pool, it takes more than one run after the last one in use for damage. These runs hold no
// entries, so they are forgotten.
void FoundIndex::SetBlocks(uint64_t blocks) {
  layout_.SetBlocks(blocks);
  const uint64_t runs_kept = layout_.grown() ? layout_.RunOf(blocks - 1) + 1 : 0;
  for (uint64_t run = runs_kept; run < runs_.size(); ++run) runs_[run] = 0;
  if (blocks == geometry_.first_blocks()) return;
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(ShardRecord, blocks);
  nvm_.Store64(at, format::CheckedWord::Of(blocks).raw());
  nvm_.Persist(at, sizeof(uint64_t));
}

format::Reaches FoundIndex::RecordedReaches() const {
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(ShardRecord, reaches);
  return format::ReachesIn(format::CheckedWord(nvm_.Load64(at)));
}

// An entry is beyond its key's reach if the page with the record is older than the page with the entry.
void FoundIndex::RaiseReach(Slot slot, const format::IndexEntry& entry, uint64_t key_hash) {
  if (entry.entry_meta().distance() != EntryMeta::kFar || layout_.BlockOf(key_hash) != layout_.BlockWith(slot)) return;
  while (!layout_.WindowOf(key_hash).Has(slot)) layout_.SetReaches(layout_.reaches().Raised(key_hash));
}

void FoundIndex::StoreReaches() {
  if (layout_.reaches() == RecordedReaches()) return;
  const uint64_t at = format::ShardRecordOffset(shard_) + offsetof(ShardRecord, reaches);
  nvm_.Store64(at, format::CheckedWord::Of(layout_.reaches().number()).raw());
  nvm_.Persist(at, sizeof(uint64_t));
}

void FoundIndex::StoreEntry(Slot slot, format::EntryWord word) {
  const uint64_t at = layout_.SlotOffset(slot);
  nvm_.Store64(at, word.raw());
  nvm_.Persist(at, sizeof(uint64_t));
}

}  // namespace erda::server
