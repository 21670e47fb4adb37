#include "server/cleaning.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"

namespace erda::server {

using format::Counter;
using log::ShardLog;

namespace {

// Proposals applied in one step: few microseconds, which a request may have to wait.
constexpr size_t kAppliedPerStep = 8;
// Reservations looked at in one step, while a region waits for some that may have arrived.
constexpr size_t kSweptPerStep = 8;
constexpr uint64_t kStepsPerSweep = 64;
// A region is worth merging if so much of it is dead: one part in ... With a put that waits, or when it is asked for,
// every little helps.
constexpr uint64_t kWorthwhile = 32;
constexpr uint64_t kBarelyWorthwhile = 256;
// Whiles (TidyTimer: from 5 ms on, each twice as long) in which a put waits for a region that is held.
constexpr uint32_t kPatience = 8;
// Of a shard that is never idle a while is so many looks.
constexpr uint64_t kStepsOfAWhile = 1 << 18;
// A put waits so long at most for chunks to be given back.
constexpr Nanoseconds kChunksAwaitedMax = std::chrono::seconds(3);
constexpr uint64_t kSearchedPerStep = 128;
// How much faster than the writers it walks, and how far it may do so at once.
constexpr double kHaste = 1.5;
constexpr uint64_t kStartBytes = 64 << 10;

}  // namespace

Cleaning::Cleaning(Versions& versions, const format::Geometry& geometry, std::span<std::byte> control,
                   CleanQueues& queues)
    : versions_(versions),
      log_(versions.log()),
      geometry_(geometry),
      counters_(control),
      queues_(queues),
      tried_(geometry.regions_per_shard) {}

void Cleaning::Begin() {
  for (const auto& emptied : log_.regions().emptied()) to_zero_.push_back(emptied.region);
  OrderZeroes();
}

size_t Cleaning::Step() {
  versions_.CountPublished();
  size_t done = queues_.proposals.empty() ? 0 : Apply();
  if (state_ == State::kIdle && Due()) done += Choose();
  if (state_ == State::kMerging) SetPace();
  if (state_ == State::kSearching) done += Search();
  if (queues_.hurry.load(std::memory_order_relaxed) != Wanted()) {
    queues_.hurry.store(Wanted(), std::memory_order_relaxed);
  }
  if (Wanted() && ++steps_ % kStepsOfAWhile == 0) ++impatience_;
  return done;
}

// --- What the cleaner proposes

size_t Cleaning::Apply() {
  size_t applied = 0;
  while (applied < kAppliedPerStep) {
    const auto proposal = queues_.proposals.Pop();
    if (!proposal) break;
    ++applied;
    switch (proposal->kind) {
      case CleanProposal::Kind::kMove:
        if (versions_.Move(versions_.PublishPuts(), proposal->key_hash, proposal->from, proposal->to)) {
          counters_.Add(Counter::kCleanMoves);
        }
        break;
      case CleanProposal::Kind::kForged:
        versions_.SetAside(versions_.PublishPuts(), proposal->key_hash, proposal->head, proposal->from);
        break;
      case CleanProposal::Kind::kNeedSegment:
        GiveSegment(*proposal);
        break;
      case CleanProposal::Kind::kMerged:
        OnMerged(*proposal);
        break;
      case CleanProposal::Kind::kZeroed:
        log_.FreeEmptied(proposal->region);
        --zeroing_;
        OrderZeroes();
        ++rooms_;
        in_vain_ = 0;
        space_.waits = slots_.waits = false;
        tried_.assign(tried_.size(), {});
        counters_.Set(Counter::kFreeRegions, log_.regions().free_regions());
        break;
      case CleanProposal::Kind::kExpire:
        versions_.Expire(versions_.PublishPuts(), proposal->key_hash, proposal->head, proposal->from);
        break;
      case CleanProposal::Kind::kSwept:
        state_ = State::kIdle;
        in_vain_ = 0;
        next_deadline_ = proposal->end;
        break;
      case CleanProposal::Kind::kDamaged:
        if (const auto key = versions_.DamagedKey(proposal->index_slot, proposal->head, proposal->from)) {
          counters_.Add(Counter::kDamagedKeys);
          if (on_damage) on_damage(*key);
        }
        break;
    }
  }
  if (applied > 0) queues_.Signal();  // there is room for more
  return applied;
}

void Cleaning::GiveSegment(const CleanProposal& wanted) {
  CleanOrder order;
  order.kind = CleanOrder::Kind::kSegment;
  order.head = wanted.head;
  auto segment = wanted.end == 0 ? log_.copies().Open(wanted.head) : std::nullopt;
  order.begun = segment.has_value();
  order.last_copy = order.begun ? log_.copies().Last(wanted.head) : 0;
  if (!segment) segment = log_.copies().Next(wanted.head, wanted.end);
  if (segment) {
    order.region = segment->region;
    order.generation = segment->generation;
    order.slot = segment->slot;
    order.segment = segment->segment;
  } else {
    order.kind = CleanOrder::Kind::kNoSegment;
  }
  counters_.Set(Counter::kFreeRegions, log_.regions().free_regions());
  Order(order);
}

// There is always room: merging, zeroing and giving a segment are answered one by one, and no more zeroes are told than
// fit.
void Cleaning::Order(const CleanOrder& order) {
  (void)queues_.orders.Push(order);
  queues_.Signal();
}

void Cleaning::OrderZeroes() {
  while (!to_zero_.empty() && zeroing_ < 8) {
    CleanOrder order;
    order.kind = CleanOrder::Kind::kZero;
    order.region = to_zero_.back();
    to_zero_.pop_back();
    ++zeroing_;
    Order(order);
  }
}

void Cleaning::OnMerged(const CleanProposal& merged) {
  state_ = State::kIdle;
  if (on_merge) on_merge(false);
  ++in_vain_;
  log_.ForEachFull([&](const ShardLog::LinkedRegion& region) {
    if (region.region != merged.region) return;
    if (region.use.none()) {
      EmptyRegion(region);
    } else if (merged.end != 0) {
      state_ = State::kSearching;
      searched_ = region;
      search_at_ = 0;
      search_settled_ = false;
    } else {
      Tried(region);
    }
  });
}

// There was no room to copy to, or something is named there that could not be moved.
void Cleaning::Tried(const ShardLog::LinkedRegion& region) {
  tried_[geometry_.NumberInShard(region.region)] = {region.generation, region.use.names};
}

// What the walk did not meet is damaged, or its client has forged its header. Its key is not known, so all of the index
// is looked through.
size_t Cleaning::Search() {
  const index::Slot end = std::min(search_at_ + kSearchedPerStep, versions_.index().size());
  const AllPublished proof = versions_.PublishPuts();
  for (; search_at_ < end; ++search_at_) {
    search_settled_ |= versions_.SetAside(proof, search_at_, searched_.head, searched_.slot);
  }
  if (end < versions_.index().size()) return 1;
  state_ = State::kIdle;
  log_.ForEachFull([&](const ShardLog::LinkedRegion& region) {
    if (region.region != searched_.region) return;
    if (region.use.none()) {
      EmptyRegion(region);
    } else if (!search_settled_) {
      Tried(region);
    }
  });
  return 1;
}

// (C6)
void Cleaning::EmptyRegion(const ShardLog::LinkedRegion& region) {
  log_.Empty(region.head, region.slot);
  to_zero_.push_back(region.region);
  OrderZeroes();
  counters_.Add(Counter::kCleanRegions);
  counters_.Add(Counter::kCleanBytesFreed, geometry_.region_size);
}

// --- What comes next

bool Cleaning::Due() const { return asked_ || log_.regions().slots().crowded_heads() > 0 || NeedsSpace(); }

bool Cleaning::NeedsSpace() const {
  if (space_.waits) return true;
  const uint64_t coming = log_.regions().free_regions() + zeroing_ + to_zero_.size();
  return coming <= 2 + geometry_.regions_per_shard / 32;
}

bool Cleaning::Expects(uint32_t head, bool waited) {
  versions_.CountPublished();
  Want& want = head != kAnyHead && log_.regions().slots().IsCrowded(head) ? slots_ : space_;
  if (want.hopeless && log_.changes() == want.changes) {
    if (!versions_.HasPassed(next_deadline_)) return false;
    next_deadline_ = 0;  // it is looked through once more for that
  }
  if (!Wanted()) {
    in_vain_ = impatience_ = 0;
    unseen_ = versions_.in_flight();
    swept_ = false;
  }
  if (!Wanted() && !waited) {
    waited_ = Nanoseconds(0);
    versions_.chunks().BeginAwaiting();
  }
  want = {.waits = true};
  return true;
}

void Cleaning::LosePatience(Nanoseconds since) {
  ++impatience_;
  AwaitChunks(since);
}

void Cleaning::AwaitChunks(Nanoseconds since) {
  waited_ += since;
  versions_.chunks().Await(since);
}

bool Cleaning::OutOfPatience() const {
  return impatience_ >= kPatience && (waited_ >= kChunksAwaitedMax || !versions_.chunks().IsAwaiting());
}

void Cleaning::GiveUp(Want& want) {
  if (!want.waits) return;
  want = {.waits = false, .hopeless = true, .changes = log_.changes()};
  ++rooms_;
}

void Cleaning::Ask() {
  asked_ = true;
  asked_generation_ = log_.regions().newest_generation();
  counters_.Set(Counter::kCleaning, 1);
}

// A region whose live objects fit where copies can go without the next region.
bool Cleaning::Fits(const ShardLog::LinkedRegion& region) const {
  if (log_.regions().free_regions() > 0) return true;
  return region.use.live_bytes <= log_.copies().Room(region.head);
}

// What is in flight keeps the version before it alive, in whatever region that is: it is settled if it has arrived.
// False when all was looked at that was in flight when the put began to wait.
bool Cleaning::LookAtArrived() {
  if (unseen_ == 0) return false;
  unseen_ -= std::min(unseen_, kSweptPerStep);
  (void)versions_.Sweep(kSweptPerStep);
  return true;
}

// False when the cleaner has looked since the put began to wait.
bool Cleaning::LookAtExpired() {
  if (swept_ || !queues_.MayExpire()) return false;
  swept_ = true;
  state_ = State::kSweeping;
  CleanOrder order;
  order.kind = CleanOrder::Kind::kSweep;
  Order(order);
  return true;
}

size_t Cleaning::Choose() {
  if (!versions_.index().counted()) return 0;
  // To look at all regions takes a while: not again before something may have changed.
  if (!asked_ && !Wanted() && log_.changes() < look_again_at_) return 0;
  const bool in_need = Wanted() || log_.regions().free_regions() <= 1;
  std::vector<ShardLog::LinkedRegion> empty;
  ShardLog::LinkedRegion best;
  double best_score = 0;
  bool waits = false;  // a region would be worthwhile, but for what is in flight there
  bool slots_wait = false;
  bool slots_gain = false;  // a head without slots has a region that is worthwhile
  const bool slots_first = slots_.waits || !space_.waits;
  log_.ForEachFull([&](const ShardLog::LinkedRegion& region) {
    if (region.use.none() || (Planted(Flaw::kFreesHeld) && region.use.names == 0)) {
      empty.push_back(region);
      return;
    }
    const uint64_t gain = region.dead_bytes();
    const bool was_asked_for = asked_ && region.generation <= asked_generation_;
    if (!was_asked_for && !region.crowded && !NeedsSpace()) return;
    const bool little_counts = space_.waits || region.crowded || was_asked_for;
    if (gain < geometry_.region_size / (little_counts ? kBarelyWorthwhile : kWorthwhile)) return;
    if (region.use.held > 0 && !Planted(Flaw::kFreesHeld) && !Planted(Flaw::kMovesUnsettled)) {
      waits = true;
      slots_wait |= region.crowded;
      return;
    }
    const InVain& tried = tried_[geometry_.NumberInShard(region.region)];
    if (tried.generation == region.generation && tried.names == region.use.names) return;
    if (!Fits(region)) return;
    const double live = static_cast<double>(region.use.live_bytes) / static_cast<double>(geometry_.region_size);
    // What is gained for what it costs to read all and to write what is live; what is old changes less.
    const double score = in_need ? static_cast<double>(gain)
                                 : static_cast<double>(gain) * static_cast<double>(region.age + 1) / (1 + live);
    slots_gain |= region.crowded;
    // No other region is of use to puts in a head without slots.
    const auto rank = [&](bool crowded, double of) { return std::pair(crowded && slots_first, of); };
    if (best_score == 0 || rank(region.crowded, score) > rank(best.crowded, best_score)) {
      best = region;
      best_score = score;
    }
  });
  for (const ShardLog::LinkedRegion& region : empty) EmptyRegion(region);
  if (!empty.empty()) return empty.size();
  if (zeroing_ > 0 && !asked_) return 0;  // there will be room
  // Other heads may be cleaned for ever, and those puts have no more of it.
  if (slots_.waits && zeroing_ == 0 && !slots_gain && (!slots_wait || OutOfPatience())) {
    if (LookAtArrived() || LookAtExpired()) return 1;
    GiveUp(slots_);
  }
  const bool in_circles = Wanted() && in_vain_ > 2 * geometry_.regions_per_shard;
  if (best_score > 0 && !in_circles) {
    CleanOrder order;
    order.region = best.region;
    order.generation = best.generation;
    order.head = best.head;
    order.slot = best.slot;
    state_ = State::kMerging;
    if (on_merge) on_merge(true);
    appended_ = log_.tails().appended();
    begin_ = queues_.walked.load(std::memory_order_relaxed);
    bytes_per_byte_ = kHaste * static_cast<double>(geometry_.region_size) / static_cast<double>(best.dead_bytes());
    Order(order);
    return 1;
  }
  if (Wanted() && zeroing_ == 0 && LookAtExpired()) return 1;
  if (waits) {
    versions_.TakeBackChunks();
    const bool sweeps = !Wanted() || steps_ % kStepsPerSweep == 0;
    const size_t settled = sweeps ? versions_.Sweep(kSweptPerStep) : 0;
    if (settled > 0 || (Wanted() && !OutOfPatience())) return settled;
  }
  if (zeroing_ > 0) return 0;
  if (Wanted() && LookAtArrived()) return 1;
  look_again_at_ = log_.changes() + geometry_.regions_per_shard;
  if (asked_) counters_.Set(Counter::kCleaning, 0);
  asked_ = false;
  if (!Wanted()) return 0;
  GiveUp(space_);
  GiveUp(slots_);
  return 1;
}

// As fast as the writers use up space, and a little more; as fast as it can if they would have to wait.
void Cleaning::SetPace() {
  uint64_t allowance = UINT64_MAX;
  if (!asked_ && !Wanted() && log_.regions().free_regions() > 1) {
    const auto appended = static_cast<double>(log_.tails().appended() - appended_);
    allowance = begin_ + kStartBytes + static_cast<uint64_t>(appended * bytes_per_byte_);
  }
  const uint64_t before = queues_.allowance.load(std::memory_order_relaxed);
  const bool little_more = allowance >= before && allowance - before < kStartBytes;
  if (little_more && (allowance != UINT64_MAX || allowance == before)) return;  // not worth waking somebody
  queues_.allowance.store(allowance, std::memory_order_relaxed);
  queues_.Signal();
}

}  // namespace erda::server
