#include "server/cleaning/region_choice.h"

#include <utility>

#include "base/planted.h"
#include "server/cleaning/copy_segments.h"

namespace erda::server {

using log::ShardLog;

namespace {

// A region is worth merging if one part in 32 of it is dead. The limit is 1 in 256 while a put waits, in a
// crowded head, and for regions that a client asked for.
constexpr uint64_t kWorthwhile = 32;
constexpr uint64_t kBarelyWorthwhile = 256;

// Returns true if there is room for copies of the region's live objects. The copies may take the next free region.
bool HasRoomForCopies(ShardLog& log, const ShardLog::LinkedRegion& region) {
  return log.regions().free_regions() > 0 || region.use.live_bytes <= log.copies().Room(region.head);
}

// Does the same for a region that is held.
bool HasRoomForEarlyCopies(ShardLog& log, const ShardLog::LinkedRegion& region) {
  return MayOpenForEarlyCopies(log, region.head) || region.use.live_bytes <= log.copies().Room(region.head);
}

}  // namespace

RegionChoice ChooseRegion(ShardLog& log, const log::RegionCounts& counts, const format::Geometry& geometry,
                          const TriedRegions& tried, const MergedRegions& merged, const CleaningGoal& goal) {
  const bool in_need = goal.put_needs_region || goal.put_needs_slot || log.regions().free_regions() <= 1;
  // Only a region of a crowded head helps a put that needs a slot there.
  const bool slots_first = goal.put_needs_slot || !goal.put_needs_region;
  RegionChoice choice;
  double best_score = 0;
  double fewest = 0;
  counts.ForEachFull([&](const ShardLog::LinkedRegion& region) {
    if (region.use.none() || (Planted(Flaw::kFreesHeld) && region.use.names == 0)) {
      choice.unneeded.push_back(region);
      return;
    }
    const bool is_merged = merged.Has(region);
    if (is_merged && region.use.held == 0) {
      if (Planted(Flaw::kReplicateSkipped)) {
        choice.unneeded.push_back(region);
      } else {
        choice.merged = region;
      }
      return;
    }
    const uint64_t gain = region.dead_bytes();
    const bool was_asked_for = goal.asked && region.generation <= *goal.asked;
    if (!was_asked_for && !region.crowded && !goal.few_free) return;
    const bool little_counts = goal.put_needs_region || region.crowded || was_asked_for;
    if (gain < geometry.region_size / (little_counts ? kBarelyWorthwhile : kWorthwhile)) return;
    const auto rank = [&](bool crowded, double of) { return std::pair(crowded && slots_first, of); };
    if (region.use.held > 0 && !Planted(Flaw::kFreesHeld)) {
      choice.held = true;
      choice.crowded_held |= region.crowded;
      if (is_merged || tried.Has(region)) return;
      if (!merged.MayCopy(region.use.live_bytes) || !HasRoomForEarlyCopies(log, region)) return;
      // Each held region becomes free as a whole after its holders release it. So the best one needs the fewest copies.
      const double few = -static_cast<double>(region.use.live_bytes);
      if (!choice.best_held || rank(region.crowded, few) > rank(choice.best_held->crowded, fewest)) {
        choice.best_held = region;
        fewest = few;
      }
      return;
    }
    if (tried.Has(region) || !HasRoomForCopies(log, region)) return;
    choice.gains_slot |= region.crowded;
    // The score is the gain for the cost to read the whole region and to write its live part. An old region changes
    // less.
    const double live = static_cast<double>(region.use.live_bytes) / static_cast<double>(geometry.region_size);
    const double score = in_need ? static_cast<double>(gain)
                                 : static_cast<double>(gain) * static_cast<double>(region.age + 1) / (1 + live);
    if (!choice.best || rank(region.crowded, score) > rank(choice.best->crowded, best_score)) {
      choice.best = region;
      best_score = score;
    }
  });
  return choice;
}

}  // namespace erda::server
