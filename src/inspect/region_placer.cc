#include "inspect/region_placer.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/crc32c.h"
#include "inspect/checksum_back.h"

namespace erda::inspect {

using format::kGranuleBytes;
using format::LogAddress;
using format::ObjectState;
using format::RegionWord;

void RegionPlacer::Run() {
  std::vector<uint32_t> rest;
  for (uint32_t number = 0; number < geometry_.regions_per_shard; ++number) {
    const uint32_t region = geometry_.RegionOf(bytes_.shard(), number);
    if (geometry_.RegionOffset(region) >= bytes_.pool().size()) break;
    AddGenerationsOfSegments(region);
    if (!PlaceByTable(region)) rest.push_back(region);
    for (const uint32_t generation : regions_.Of(region).generations) {
      generation_max_ = std::max(generation_max_, generation);
    }
  }
  for (const uint32_t region : rest) PlaceByObjectsOrGiveUp(region);
}

void RegionPlacer::AddGenerationsOfSegments(uint32_t region) {
  const uint64_t begin = geometry_.RegionOffset(region);
  for (uint64_t segment = 0; segment < geometry_.segments_per_region(); ++segment) {
    const auto generation = GenerationIn(bytes_.ToSegmentEnd(begin + segment * geometry_.segment_size));
    if (generation) regions_.Of(region).AddGeneration(*generation);
  }
}

bool RegionPlacer::PlaceByTable(uint32_t region) {
  PlacedRegion& of = regions_.Of(region);
  const RegionWord word(
      LoadAs<uint64_t>(bytes_.pool().subspan(format::kRegionTableOffset + region * sizeof(uint64_t))));
  if (const auto linked = LinkedWord(geometry_, region, word)) {
    of.AddGeneration(linked->generation());
    regions_.Place(region, linked->HeadIn(geometry_), linked->SlotIn(geometry_), false);
    return FirstObjectFits(region);
  }
  if (word == RegionWord::OfIndex(word.generation(), word.run()) && word.run() < geometry_.runs_max()) {
    of.run = word.run();
    ++losses_.report().regions_index;
  }
  // Nothing counts in an emptied region, and the cleaner may have zeroed some of it. In a free region without a segment
  // only decay can be.
  of.unused = word == RegionWord::Emptied(word.generation()) ||
              (word == RegionWord::Free(word.generation()) && of.generations.empty());
  return false;
}

// The word in the table may be of another time than the region.
bool RegionPlacer::FirstObjectFits(uint32_t region) const {
  const uint64_t first = geometry_.RegionOffset(region) + format::FirstObjectOffset(0);
  if (regions_.ObjectAt(first, geometry_.segment_size).state != ObjectState::kNothing) return true;
  const auto bytes = bytes_.ToSegmentEnd(first);
  return IsZero(bytes.first(std::min<size_t>(bytes.size(), sizeof(format::ObjectHeader))));
}

void RegionPlacer::PlaceByObjectsOrGiveUp(uint32_t region) {
  const PlacedRegion& of = regions_.Of(region);
  if (of.run && of.generations.empty()) return;
  const uint64_t begin = geometry_.RegionOffset(region);
  if (IsZero(bytes_.pool().subspan(begin, std::min(geometry_.region_size, bytes_.pool().size() - begin)))) return;
  const bool placed = of.placed;
  if (PlaceByObjects(region)) {
    losses_.report().regions_found += placed ? 0 : 1;
  } else if (!of.run && !placed && !of.unused) {
    ++losses_.report().regions_unread;
    losses_.Add("of region " + std::to_string(region) + " nothing can be read", std::nullopt, begin);
  }
}

// Takes the place and the generation on which most objects agree.
bool RegionPlacer::PlaceByObjects(uint32_t region) {
  constexpr size_t kSamples = 12;
  PlacedRegion& of = regions_.Of(region);
  Votes votes;
  LoneObjects objects(4 * geometry_.region_size);
  size_t samples = 0;
  for (uint64_t at = 0; at < geometry_.region_size && samples < kSamples; at += kGranuleBytes) {
    const auto bytes = bytes_.ToSegmentEnd(geometry_.RegionOffset(region) + at);
    if (bytes.empty()) break;
    const auto object = objects.At(bytes);
    if (!object) continue;
    ++samples;
    Vote(*object, at, of, &votes);
    at += format::SpaceOf(object->header) - kGranuleBytes;
  }
  const auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == votes.end()) return false;
  const auto& [head, head_slot, generation] = best->first;
  of.AddGeneration(generation);
  regions_.Place(region, head, head_slot, true);
  return true;
}

// An object's header crc covers head, address and generation. With head and address, the crc tells the generation
// (Crc32cBefore). The generation must be one that the region's segments tell. Without any, it must be a likely one.
void RegionPlacer::Vote(const LoneObject& object, uint64_t in_region, const PlacedRegion& of, Votes* votes) const {
  constexpr uint32_t kLikelyAfter = 1024;
  constexpr std::array<std::byte, CoveredBytes::kGenerationBytes> kZeroes{};
  const CoveredBytes covered(object.header, object.key, object.deadline, 0, LogAddress(), 0);
  const uint32_t after_generation = Crc32cBefore(object.header.header_crc, covered.after_generation());
  const uint32_t with_zeroes = ~Crc32cBefore(after_generation, kZeroes);
  for (uint32_t head = bytes_.first_head(); head < bytes_.first_head() + geometry_.heads_per_shard; ++head) {
    for (uint32_t head_slot = 0; head_slot < geometry_.slots_per_head(); ++head_slot) {
      const uint64_t place = head | uint64_t{geometry_.AddressOf(head_slot, in_region).raw()} << 32;
      const uint32_t generation = ~Crc32c(bytes_.seed(), BytesOf(place)) ^ with_zeroes;
      const bool known = std::find(of.generations.begin(), of.generations.end(), generation) != of.generations.end();
      const bool likely =
          of.generations.empty() && generation > 0 && generation <= uint64_t{generation_max_} + kLikelyAfter;
      if (known || likely) ++(*votes)[{head, head_slot, generation}];
    }
  }
}

}  // namespace erda::inspect
