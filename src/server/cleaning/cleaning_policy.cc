#include "server/cleaning/cleaning_policy.h"

#include <variant>

#include "server/cleaning/copy_segments.h"

namespace erda::server {

using format::Counter;
using log::RegionCounts;
using log::ShardLog;

namespace {

// Proposals applied in one step. A request may have to wait for the few microseconds that these take.
constexpr size_t kAppliedPerStep = 8;
// Reservations that the shard looks at in one step, while a region waits for some that may have arrived.
constexpr size_t kSettledPerStep = 8;
constexpr uint64_t kLooksPerSettling = 64;

// An overload set for std::visit.
template <class... Handlers>
struct Either : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Either(Handlers...) -> Either<Handlers...>;

}  // namespace

CleaningPolicy::CleaningPolicy(Versions& versions, const format::Geometry& geometry, std::span<std::byte> control,
                               CleanQueues& queues)
    : versions_(versions),
      log_(versions.log()),
      geometry_(geometry),
      counters_(control),
      queues_(queues),
      entries_(versions, counters_),
      emptied_(log_, geometry, queues, counters_),
      search_(versions),
      tried_(geometry),
      merged_(geometry),
      waiting_(versions, queues),
      mending_(versions, counters_),
      phase_(log_, geometry, queues) {}

bool CleaningPolicy::IsQuiet(const RegionCounts& counts) const {
  return !phase_.goes_on() && !searches_ && queues_.proposals.empty() && !mending_.is_due() && !IsDue() &&
         !merged_.IsDue(counts.releases()) && !waiting_.wait().any() && !queues_.hurry.load(std::memory_order_relaxed);
}

size_t CleaningPolicy::Work(const RegionCounts& counts) {
  size_t done = queues_.proposals.empty() ? 0 : Apply(counts);
  if (mending_.Step(entries_, on_damage)) ++done;
  const bool is_idle = !phase_.goes_on() && !searches_;
  if (is_idle && (IsDue() || merged_.IsDue(counts.releases()))) done += Choose(counts);
  if (phase_.goes_on()) phase_.Update(asked() || waiting_.wait().any() || log_.regions().free_regions() <= 1);
  if (searches_) done += Search(counts);
  if (queues_.hurry.load(std::memory_order_relaxed) != waiting_.wait().any()) {
    queues_.hurry.store(waiting_.wait().any(), std::memory_order_relaxed);
  }
  if (waiting_.wait().any()) waiting_.patience().CountLook();
  return done;
}

// --- What the cleaner proposes

size_t CleaningPolicy::Apply(const RegionCounts& counts) {
  const Either handlers{
      [this](const auto& of_entry) { entries_.Apply(of_entry); },
      [this](const DamageFound& damage) { entries_.Apply(damage, on_damage); },
      [this](const SegmentWanted& wanted) {
        queues_.Send(GiveCopySegment(log_, wanted, phase_.may_take_last()));
        counters_.Set(Counter::kFreeRegions, log_.regions().free_regions());
      },
      [&](const RegionMerged& merged) { OnMerged(merged, counts); },
      [this](const RegionZeroed& zeroed) {
        emptied_.Free(zeroed.region);
        waiting_.wait().EndAll();
        tried_.Clear();
      },
      [this](const MendingDue& /*due*/) { mending_.Begin(); },
      [this](const SweepEnded& ended) {
        waiting_.wait().ForgetMerges();
        waiting_.resorts().EndSweep(ended.next_deadline);
      },
  };
  size_t applied = 0;
  while (applied < kAppliedPerStep) {
    const auto proposal = queues_.proposals.Pop();
    if (!proposal) break;
    if (!std::holds_alternative<MendingDue>(*proposal)) ++applied;
    std::visit(handlers, *proposal);
  }
  if (applied > 0) queues_.bell.Ring();  // there is room for more
  return applied;
}

void CleaningPolicy::Empty(const ShardLog::LinkedRegion& region) {
  merged_.Remove(region);
  emptied_.Empty(region);
}

// A replicate looks at the held places alone. If an entry names something else in the region, it was mended since. Then
// a merge of the region follows, which looks everywhere.
void CleaningPolicy::OnMerged(const RegionMerged& answer, const RegionCounts& counts) {
  const bool replicated = phase_.End() == CleanPhase::kReplicate;
  if (on_merge) on_merge(false);
  counts.ForEachFull([&](const ShardLog::LinkedRegion& region) {
    if (region.region != answer.region) return;
    const bool was_held = merged_.Has(region) && !replicated;
    if (!was_held && !replicated) waiting_.wait().CountMerge();
    if (region.use.none() || (was_held && region.use.names == 0 && Planted(Flaw::kEmptiedAfterMerge))) {
      Empty(region);
    } else if (!answer.complete) {
      merged_.Remove(region);
      tried_.Add(region);
    } else if (replicated) {
      merged_.Remove(region);
    } else if (!was_held) {
      searches_ = true;
      search_.Begin(region);
    }
  });
}

size_t CleaningPolicy::Search(const RegionCounts& counts) {
  if (!search_.Step()) return 1;
  searches_ = false;
  counts.ForEachFull([&](const ShardLog::LinkedRegion& region) {
    if (region.region != search_.region()) return;
    if (region.use.none()) {
      Empty(region);
    } else if (!search_.has_settled()) {
      tried_.Add(region);
    }
  });
  return 1;
}

// --- Asked for by a client

void CleaningPolicy::Ask() {
  asked_ = log_.regions().newest_generation();
  counters_.Set(Counter::kCleaning, 1);
}

// --- What comes next

bool CleaningPolicy::NeedsSpace() const {
  if (waiting_.wait().Waits(Room::kRegion)) return true;
  const uint64_t coming = log_.regions().free_regions() + emptied_.size();
  return coming <= 2 + geometry_.regions_per_shard / 32;
}

bool CleaningPolicy::IsDue() const { return asked() || log_.regions().slots().crowded_heads() > 0 || NeedsSpace(); }

size_t CleaningPolicy::Choose(const RegionCounts& counts) {
  const index::Index& index = versions_.index();
  if (waiting_.resorts().is_sweeping() || !index.census().is_complete() || index.mender().rest_is_due()) return 0;
  // A look at all regions takes long, so the shard waits until something may have changed.
  const bool released = merged_.IsDue(counts.releases());
  if (!asked() && !waiting_.wait().any() && !released && counts.changes() < look_again_at_) return 0;

  const CleaningGoal goal{.asked = asked_,
                          .few_free = NeedsSpace(),
                          .put_needs_region = waiting_.wait().Waits(Room::kRegion),
                          .put_needs_slot = waiting_.wait().Waits(Room::kHeadSlot)};
  const RegionChoice choice = ChooseRegion(log_, counts, geometry_, tried_, merged_, goal);
  for (const ShardLog::LinkedRegion& region : choice.unneeded) Empty(region);
  if (!choice.unneeded.empty()) return choice.unneeded.size();
  if (choice.merged) return Begin(*choice.merged, CleanPhase::kReplicate, merged_.HeldIn(*choice.merged));
  merged_.Look(counts.releases());
  if (!IsDue()) return 0;
  if (emptied_.being_zeroed() && !asked()) return 0;  // there will be room soon

  // Cleaning of other heads may go on for ever, and it does not help a put that needs a slot in this one.
  if (goal.put_needs_slot && !emptied_.being_zeroed() && !choice.gains_slot &&
      (!choice.crowded_held || waiting_.patience().is_over())) {
    if (waiting_.resorts().SettleArrived() || waiting_.resorts().OrderSweep()) return 1;
    waiting_.wait().GiveUp(Room::kHeadSlot, counts.changes());
  }
  const bool in_circles = waiting_.wait().any() && waiting_.wait().merges() > 2 * geometry_.regions_per_shard;
  if (choice.best && !in_circles) return Begin(*choice.best, CleanPhase::kMerge, {});
  if (waiting_.wait().any() && !emptied_.being_zeroed() && waiting_.resorts().OrderSweep()) return 1;
  if (choice.held) {
    versions_.delegating().RevokeFull();
    const bool settles = !waiting_.wait().any() || waiting_.patience().looks() % kLooksPerSettling == 0;
    const size_t settled = settles ? versions_.Sweep(kSettledPerStep) : 0;
    if (settled > 0) return settled;
    // Merges a held region early, so that it can be emptied soon after its holders release it.
    if (choice.best_held)
      return Begin(*choice.best_held, CleanPhase::kMerge, merged_.Add(versions_, *choice.best_held));
    if (waiting_.wait().any() && !waiting_.patience().is_over()) return 0;
  }
  if (emptied_.being_zeroed()) return 0;
  if (waiting_.wait().any() && waiting_.resorts().SettleArrived()) return 1;
  return GiveUp(counts);
}

size_t CleaningPolicy::Begin(const ShardLog::LinkedRegion& region, CleanPhase phase, std::span<const HeldPlace> held) {
  if (on_merge) on_merge(true);
  phase_.Begin(region, phase, held);
  return 1;
}

size_t CleaningPolicy::GiveUp(const RegionCounts& counts) {
  look_again_at_ = counts.changes() + geometry_.regions_per_shard;
  if (asked()) counters_.Set(Counter::kCleaning, 0);
  asked_.reset();
  if (!waiting_.wait().any()) return 0;
  waiting_.wait().GiveUp(Room::kRegion, counts.changes());
  waiting_.wait().GiveUp(Room::kHeadSlot, counts.changes());
  return 1;
}

}  // namespace erda::server
