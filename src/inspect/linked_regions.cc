#include "inspect/linked_regions.h"

#include <string>

namespace erda::inspect {

using format::LogAddress;
using format::RegionWord;
using format::SegmentHeader;

LinkedRegions::LinkedRegions(const ShardBytes& bytes, ShardFindings* findings)
    : bytes_(bytes),
      geometry_(bytes.geometry()),
      runs_(geometry_.runs_max()),
      regions_(geometry_.heads_per_shard * geometry_.slots_per_head(), kNoRegion) {
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(bytes_.shard(), number);
    const RegionWord word = bytes_.RegionWordOf(region);
    if (word == RegionWord::Free(word.generation())) {
      AddFree(region, word, findings);
    } else if (word == RegionWord::Emptied(word.generation())) {
      ++findings->report().regions_emptied;
    } else if (word == RegionWord::OfIndex(word.generation(), word.run())) {
      AddRun(region, word, findings);
    } else {
      AddLinked(region, word, findings);
    }
  }
}

void LinkedRegions::AddFree(uint32_t region, RegionWord word, ShardFindings* findings) {
  ++findings->report().regions_free;
  const uint64_t begin = geometry_.RegionOffset(region);
  bool opened = false;
  for (uint64_t at = begin; at < begin + geometry_.region_size; at += geometry_.segment_size) {
    opened |= bytes_.Load<SegmentHeader>(at).OpenedAfter(word.generation());
  }
  if (opened) {
    findings->Add("the region table is damaged: region " + std::to_string(region) +
                  " is marked as free, and was opened since then");
  }
}

void LinkedRegions::AddRun(uint32_t region, RegionWord word, ShardFindings* findings) {
  ++findings->report().regions_index;
  if (word.run() < runs_.size() && runs_[word.run()] == 0) {
    runs_[word.run()] = region + 1;
    return;
  }
  findings->Add("the region table is damaged: region " + std::to_string(region) + " cannot be run " +
                std::to_string(word.run()) + " of the index");
}

void LinkedRegions::AddLinked(uint32_t region, RegionWord word, ShardFindings* findings) {
  const uint64_t head = word.HeadIn(geometry_) - bytes_.first_head();  // huge if it is an earlier shard's
  const uint32_t head_slot = word.SlotIn(geometry_);
  if (!word.IsWholeLink() || head >= geometry_.heads_per_shard || head_slot >= geometry_.slots_per_head() ||
      RegionIn(head, head_slot) != kNoRegion) {
    findings->Add("the region table is damaged: region " + std::to_string(region) + " cannot be head slot " +
                  std::to_string(word.slot()) + " of head " + std::to_string(word.head()));
    return;
  }
  ++findings->report().regions_linked;
  regions_[head * geometry_.slots_per_head() + head_slot] = region;
}

uint32_t LinkedRegions::RegionAt(uint32_t head, LogAddress address) const {
  const uint64_t head_in_shard = head - bytes_.first_head();  // huge if it is an earlier shard's
  const uint32_t head_slot = geometry_.SlotOf(address);
  if (head_in_shard >= geometry_.heads_per_shard || head_slot >= geometry_.slots_per_head() || address.none()) {
    return kNoRegion;
  }
  return RegionIn(head_in_shard, head_slot);
}

}  // namespace erda::inspect
