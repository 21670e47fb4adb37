#include "log/region_table.h"

#include <algorithm>
#include <string>

#include "base/planted.h"
#include "format/log_layout.h"
#include "log/region_words.h"
#include "log/segment_headers.h"

namespace erda::log {

using format::RegionWord;

RegionTable::RegionTable(nvm::Writer& nvm, const ShardShape& shape, std::span<std::byte> control)
    : nvm_(nvm), shape_(shape), slots_(shape, control), free_(nvm, shape) {}

// --- Taking up

Status RegionTable::TakeUp() {
  for (uint32_t number = 0; number < shape_.geometry().regions_per_shard; ++number) {
    const uint32_t region = shape_.RegionOf(number);
    const RegionWord word = LoadRegionWord(nvm_, region);
    newest_generation_ = std::max(newest_generation_, word.generation());
    if (word == RegionWord::Free(word.generation())) {
      free_.Add(region);
      continue;
    }
    if (word == RegionWord::Emptied(word.generation())) {
      emptied_.push_back({region, word.generation()});
      continue;
    }
    if (word == RegionWord::OfIndex(word.generation(), word.run())) {
      if (auto status = TakeUpRun(region, word.run()); !status.ok()) return status;
      continue;
    }
    const uint32_t head = word.HeadIn(shape_.geometry());
    const uint32_t slot = word.SlotIn(shape_.geometry());
    const bool possible = word.IsWholeLink() && shape_.HasHead(head) && slot < shape_.geometry().slots_per_head();
    if (!possible || slots_.RegionIn(head, slot) != kNoRegion) {
      return {Code::kCorruption, "the region table is damaged: region " + std::to_string(region) +
                                     " cannot be head slot " + std::to_string(word.slot()) + " of head " +
                                     std::to_string(word.head())};
    }
    slots_.Fill(head, slot, region, word.generation(), SlotState::kFull);
  }
  if (std::ranges::find(runs_, kNoRegion) != runs_.end()) {
    return {Code::kCorruption, "the region table lacks a run of the index"};
  }
  return {};
}

Status RegionTable::TakeUpRun(uint32_t region, uint32_t run) {
  if (run >= shape_.geometry().runs_max())
    return {Code::kCorruption, "the region table names too many runs of the index"};
  if (run >= runs_.size()) runs_.resize(run + 1, kNoRegion);
  if (runs_[run] != kNoRegion) return {Code::kCorruption, "the region table names a run of the index twice"};
  runs_[run] = region;
  return {};
}

// --- Changes of a region's state

std::optional<uint32_t> RegionTable::Link(uint32_t head, LinkFor purpose) {
  const bool for_writers = purpose == LinkFor::kWriters;
  if (for_writers && slots_.IsCrowded(head)) return std::nullopt;
  const auto slot = slots_.FindUnused(head);
  if (!slot) return std::nullopt;
  const uint32_t region = free_.Take(for_writers ? 1 : 0);
  if (region == kNoRegion) return std::nullopt;

  // No two regions of a shard ever have the same generation. So a generation also tells apart the regions that stood in
  // one head slot.
  ++newest_generation_;
  const uint32_t generation =
      Planted(Flaw::kSameGeneration) ? LoadRegionWord(nvm_, region).generation() + 1 : newest_generation_;
  // If a header is not one of an earlier use, it was damaged while nobody used the region. The shard forgets it, so
  // that it does not count as damage in this use.
  for (const uint64_t segment : shape_.segments()) {
    const SegmentId id{region, segment};
    if (UseOf(nvm_, shape_, id, generation) != format::SegmentUse::kNotYet) ForgetSegment(nvm_, shape_, id);
  }
  // The word is persistent before any header in the region: a segment header counts only if its generation is the
  // region's.
  StoreRegionWord(nvm_, region, RegionWord::Linked(shape_.geometry(), generation, head, *slot));
  slots_.Fill(head, *slot, region, generation, SlotState::kAppendedTo);
  return slot;
}

std::optional<uint32_t> RegionTable::LinkRun() {
  const uint32_t region = free_.Take(1);
  if (region == kNoRegion) return std::nullopt;
  const auto word = RegionWord::OfIndex(LoadRegionWord(nvm_, region).generation(), static_cast<uint32_t>(runs_.size()));
  nvm_.Store64(RegionWordOffset(region), word.raw());
  if (!Planted(Flaw::kRunNotFlushed)) nvm_.Persist(RegionWordOffset(region), sizeof(uint64_t));
  // In an ordinary file, the shard syncs the word before its record counts a block in the run: without its runs an
  // index is lost. This happens once for each region of entries. If the sync fails, the pool's next sync fails, too,
  // and reports it.
  (void)nvm_.Sync(RegionWordOffset(region), sizeof(uint64_t));
  runs_.push_back(region);
  return region;
}

void RegionTable::Unlink(uint32_t head, uint32_t slot) {
  const uint32_t region = slots_.RegionIn(head, slot);
  StoreRegionWord(nvm_, region, RegionWord::Free(LoadRegionWord(nvm_, region).generation()));
  slots_.Vacate(head, slot, SlotState::kUnused);
  free_.Add(region);
}

void RegionTable::Empty(uint32_t head, uint32_t slot) {
  const uint32_t region = slots_.RegionIn(head, slot);
  const uint32_t generation = slots_.GenerationOf(region);
  // Entries that name the copies must be persistent first. Otherwise an older entry could lead to zeroes here after a
  // crash.
  if (!Planted(Flaw::kEmptiedNotFenced)) nvm_.Fence();
  StoreRegionWord(nvm_, region, RegionWord::Emptied(generation));
  emptied_.push_back({region, generation, head, slot});
  // (I10) A client may not know yet that the region is emptied, and may still read its bytes. While these verify, the
  // client must not take them for an object of another region in the same slot. So the slot stays used until
  // FreeEmptied.
  slots_.Vacate(head, slot, Planted(Flaw::kSlotTooEarly) ? SlotState::kUnused : SlotState::kEmptied);
}

void RegionTable::FreeEmptied(uint32_t region) {
  const auto it = std::ranges::find(emptied_, region, &EmptiedRegion::region);
  // The cleaner's zeroes are not in the stream of the shard's flushes.
  if (nvm_.holds_later() && !Planted(Flaw::kZeroesNotTaken)) {
    nvm_.FlushZeroes(shape_.geometry().RegionOffset(region), shape_.geometry().region_size);
    if (!Planted(Flaw::kZeroesUnfenced))
      nvm_.Fence();  // The mirror has the zeroes before the region is free. Here the cleaner has fenced them.
  }
  // If the store gets lost in a crash, the next server's cleaner fills the region with zeroes once more.
  nvm_.Store64(RegionWordOffset(region), RegionWord::Free(it->generation).raw());
  nvm_.Flush(RegionWordOffset(region), sizeof(uint64_t));
  if (it->head != UINT32_MAX) slots_.Free(it->head, it->slot);
  emptied_.erase(it);
  free_.Add(region);
}

// Returns false for a word that was damaged since the region was linked, so that the word stays as it is.
bool RegionTable::AwaitsSettled(uint32_t region) const {
  const RegionWord word = LoadRegionWord(nvm_, region);
  const uint32_t head = word.HeadIn(shape_.geometry());
  const uint32_t slot = word.SlotIn(shape_.geometry());
  const bool possible = word.IsWholeLink() && shape_.HasHead(head) && slot < shape_.geometry().slots_per_head();
  const bool sound =
      possible && slots_.RegionIn(head, slot) == region && word.generation() == slots_.GenerationOf(region);
  return sound && !word.settled() && slots_.IsFull(head, slot);
}

void RegionTable::StoreSettled(uint32_t region) {
  StoreRegionWord(nvm_, region, LoadRegionWord(nvm_, region).Settled());
}

bool RegionTable::IsSettled(uint32_t region) const { return LoadRegionWord(nvm_, region).settled(); }

}  // namespace erda::log
