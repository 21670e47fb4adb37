#include "server/recovery/found_regions.h"

#include <algorithm>
#include <utility>

#include "format/log_layout.h"

namespace erda::server {

using format::LogAddress;
using format::RegionWord;
using format::SegmentHeader;

namespace {

// A shard links fewer regions than this while a page of its file stays unwritten.
constexpr uint32_t kGenerationLeap = 1 << 16;

}  // namespace

FoundRegions::FoundRegions(const nvm::Writer& nvm, const RegionBytes& bytes, const format::Geometry& geometry,
                           uint32_t pool_seed, uint32_t shard)
    : nvm_(nvm),
      bytes_(bytes),
      geometry_(geometry),
      pool_seed_(pool_seed),
      shard_(shard),
      regions_(geometry.regions_per_shard),
      heads_(geometry.heads_per_shard, std::vector<uint32_t>(geometry.slots_per_head(), kNoRegion)) {}

// Each verification leaps, even if the server does not come up after it. A generation must never repeat: an object of
// its first use would verify in the second.
Status FoundRegions::Look() {
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) Place(number);
  if (newest_generation_ < UINT32_MAX - 2 * kGenerationLeap) return {};
  return {Code::kCorruption,
          "a shard has used up the generations of its regions. Each start that verifies the pool takes 65536. "
          "'erda-pool salvage' reads the values into a dump, and 'erda-cli load' puts them into a new pool"};
}

uint32_t FoundRegions::NextGeneration() const { return newest_generation_ + kGenerationLeap; }

// A region stands in the head slot that its word names, or in the one that its objects verify in. If two regions claim
// one head slot, the one with more segment headers of its generation was there last.
void FoundRegions::Place(uint32_t number) {
  const uint32_t region = geometry_.RegionOf(shard_, number);
  SeeGenerations(region);
  const FoundRegion by_word = FromWord(region);
  const FoundRegion by_objects = FromObjects(region);
  const bool objects = by_objects.linked && (!by_word.linked || by_objects.score > by_word.score);
  regions_[number] = objects ? by_objects : by_word;
  if (!regions_[number].linked) return;
  regions_[number].named.resize(geometry_.segments_per_region());
  uint32_t& place = heads_[regions_[number].head][regions_[number].slot];
  if (place != kNoRegion) {
    const auto rank = [](const FoundRegion& r) { return std::pair(r.score, r.generation); };
    const bool is_better = rank(regions_[number]) > rank(regions_[place]);
    regions_[is_better ? place : number].linked = false;
    if (!is_better) return;
  }
  place = number;
}

void FoundRegions::SeeGenerations(uint32_t region) {
  newest_generation_ = std::max(newest_generation_, bytes_.WordOf(region).generation());
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    const uint64_t identity = bytes_.HeaderOf(region, segment).identity;
    const auto generation = static_cast<uint32_t>(identity);
    if (identity == SegmentHeader::Identity(generation)) newest_generation_ = std::max(newest_generation_, generation);
  }
}

FoundRegion FoundRegions::FromWord(uint32_t region) const {
  const RegionWord word = bytes_.WordOf(region);
  FoundRegion found;
  found.generation = word.generation();
  if (!word.IsWholeLink()) return found;
  const uint32_t head = word.HeadIn(geometry_) - first_head();  // not below heads_per_shard if it is another shard's
  found.slot = word.SlotIn(geometry_);
  found.linked = head < geometry_.heads_per_shard && found.slot < geometry_.slots_per_head();
  found.head = head;
  found.score = CountHeaders(region, found.generation);
  return found;
}

// For a region that the shard linked after it stored the word that the disk has. A segment header names the generation.
FoundRegion FoundRegions::FromObjects(uint32_t region) const {
  const RegionWord word = bytes_.WordOf(region);
  FoundRegion found;
  if (word == RegionWord::OfIndex(word.generation(), word.run())) return found;
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    const SegmentHeader header = bytes_.HeaderOf(region, segment);
    if (!header.OpenedAfter(word.generation())) continue;
    found.generation = static_cast<uint32_t>(header.identity);
    if (!FindPlace(region, segment, &found)) continue;
    found.linked = true;
    found.score = CountHeaders(region, found.generation);
    return found;
  }
  return found;
}

bool FoundRegions::FindPlace(uint32_t region, uint64_t segment, FoundRegion* found) const {
  const uint64_t in_segment = format::FirstObjectOffset(segment);
  const uint64_t in_region = segment * geometry_.segment_size + in_segment;
  const auto object =
      nvm_.Bytes(bytes_.SegmentOffset(region, segment) + in_segment, geometry_.segment_size - in_segment);
  for (found->head = 0; found->head < geometry_.heads_per_shard; ++found->head) {
    for (found->slot = 0; found->slot < geometry_.slots_per_head(); ++found->slot) {
      const format::Place place{pool_seed_, first_head() + found->head, geometry_.AddressOf(found->slot, in_region),
                                found->generation};
      if (format::InspectHeader(place, object).state != format::ObjectState::kNothing) return true;
    }
  }
  return false;
}

uint32_t FoundRegions::CountHeaders(uint32_t region, uint32_t generation) const {
  uint32_t count = 0;
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    count += bytes_.HeaderOf(region, segment).identity == SegmentHeader::Identity(generation) ? 1 : 0;
  }
  return count;
}

uint32_t FoundRegions::NumberAt(uint32_t head, LogAddress address) const {
  const uint32_t slot = geometry_.SlotOf(address);
  const uint32_t in_shard = head - first_head();
  const bool exists = !address.none() && in_shard < heads_.size() && slot < geometry_.slots_per_head();
  return exists ? heads_[in_shard][slot] : kNoRegion;
}

format::ObjectView FoundRegions::Inspect(uint32_t head, LogAddress address) const {
  const uint32_t number = NumberAt(head, address);
  if (number == kNoRegion) return {};
  const uint64_t offset = geometry_.OffsetInRegion(address);
  const uint64_t in_segment = offset & (geometry_.segment_size - 1);
  if (in_segment < sizeof(SegmentHeader)) return {};
  const auto object = nvm_.Bytes(geometry_.RegionOffset(geometry_.RegionOf(shard_, number)) + offset,
                                 geometry_.segment_size - in_segment);
  return format::InspectObject({pool_seed_, head, address, regions_[number].generation}, object);
}

void FoundRegions::MarkNamed(uint32_t head, LogAddress address) {
  const uint32_t number = NumberAt(head, address);
  if (number == kNoRegion) return;
  regions_[number].named[geometry_.OffsetInRegion(address) / geometry_.segment_size] = true;
}

}  // namespace erda::server
