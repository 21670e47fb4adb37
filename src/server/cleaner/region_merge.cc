#include "server/cleaner/region_merge.h"

#include "base/planted.h"
#include "server/cleaner/object_copy.h"

namespace erda::server {

using format::Counter;

namespace {

// A step takes a microsecond or two, unless it meets a larger object. A shard on the same processor may have to wait
// for a step.
constexpr uint64_t kWalkedPerStep = 2 << 10;

}  // namespace

RegionMerge::RegionMerge(nvm::Writer& nvm, index::ReadOnlyIndex& index, const format::Geometry& geometry,
                         uint32_t pool_seed, uint32_t shard, CleanQueues& queues, Counters counters,
                         const ServerTime& time)
    : nvm_(nvm),
      index_(index),
      geometry_(geometry),
      pool_seed_(pool_seed),
      first_head_(shard * geometry.heads_per_shard),
      queues_(queues),
      counters_(counters),
      time_(time),
      targets_(geometry.heads_per_shard, CopyTarget(geometry, pool_seed)) {}

void RegionMerge::Begin(const MergeOrder& order) {
  walk_.emplace(nvm_, index_, geometry_, pool_seed_, order);
  segment_ = SegmentState::kKnown;
}

void RegionMerge::CopyTo(const SegmentOrder& order) {
  TargetOf(order.head).Open(nvm_, order);
  segment_ = SegmentState::kKnown;
}

bool RegionMerge::Step() {
  if (!walk_ || segment_ == SegmentState::kWanted) return false;
  if (!HasRoomForBatch(queues_.proposals)) return false;
  if (budget_.walked >= queues_.allowance.load(std::memory_order_relaxed)) return false;
  const bool ended = segment_ == SegmentState::kNone || WalkOn();
  queues_.walked.store(budget_.walked, std::memory_order_relaxed);
  if (segment_ == SegmentState::kWanted) return true;
  if (ended || batch_.size() >= kCopiesPerBatch) ProposeBatch();
  if (!ended) return true;
  (void)queues_.proposals.Push(
      RegionMerged{.region = walk_->order().region, .complete = segment_ != SegmentState::kNone});
  walk_.reset();
  return true;
}

bool RegionMerge::WalkOn() {
  budget_.left = kWalkedPerStep;
  while (budget_.left > 0 && batch_.size() < kCopiesPerBatch) {
    const RegionWalk::Found found = walk_->Next(&budget_);
    if (found.at == RegionWalk::At::kEnd) return true;
    if (found.at == RegionWalk::At::kPause) return false;
    if (!Merge(found)) {
      const uint32_t head = walk_->order().head;
      ProposeBatch();
      segment_ = SegmentState::kWanted;
      (void)queues_.proposals.Push(SegmentWanted{.head = head, .end = TargetOf(head).end()});
      return false;
    }
  }
  return false;
}

bool RegionMerge::Merge(const RegionWalk::Found& found) {
  const format::ObjectHeader& header = found.object.header;
  const uint32_t head = found.place.head;
  const format::LogAddress from = found.place.address;
  if (found.at == RegionWalk::At::kForgery) {
    batch_.emplace_back(ForgeryFound{.head = head, .key_hash = header.key_hash, .from = from});
    return true;
  }
  if (HasExpired(found)) {
    batch_.emplace_back(VersionExpired{.head = head, .key_hash = header.key_hash, .from = from});
    walk_->Pass(header, &budget_);
    return true;
  }
  const uint64_t space = SpaceOf(header);
  const auto to = TargetOf(head).Take(space);
  if (!to) return false;
  CopyObject(nvm_, found.object, found.offset, *to);
  batch_.emplace_back(VersionCopied{.key_hash = header.key_hash, .from = from, .to = to->place.address});
  counters_.Add(Counter::kCleanBytesCopied, space);
  walk_->Pass(header, &budget_);
  return true;
}

bool RegionMerge::HasExpired(const RegionWalk::Found& found) const {
  if (!time_.Passed(found.object.deadline)) return false;
  const auto names = [&](index::Slot /*slot*/, const format::IndexEntry& entry) {
    const auto word = entry.entry_word();
    return word.settled() && word.new_address() == found.place.address;
  };
  return index_.Find(found.object.header.key_hash, names).has_value();
}

// (C4) The fence waits for the flushes of CopyObject. Step has seen that the queue has room for a batch.
void RegionMerge::ProposeBatch() {
  if (batch_.empty()) return;
  if (!Planted(Flaw::kCopyNotFlushed)) nvm_.Fence();
  for (const CleanProposal& proposal : batch_) (void)queues_.proposals.Push(proposal);
  batch_.clear();
  counters_.Set(Counter::kCleanNvmBytes, nvm_.counters().bytes);
}

}  // namespace erda::server
