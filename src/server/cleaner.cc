#include "server/cleaner.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/bytes.h"
#include "base/planted.h"
#include "format/superblock.h"

namespace erda::server {

using format::Counter;
using format::FirstObjectOffset;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectHeader;
using format::ObjectState;
using format::ObjectView;
using format::Place;
using format::SegmentHeader;

namespace {

// Proposed at once, with one fence.
constexpr size_t kMovesPerBatch = 32;
// Of a walk, and of zeroes, in one step, if one object is not larger: a microsecond or two, which a shard on the same
// processor may have to wait.
constexpr uint64_t kStepBytes = 2 << 10;
// Versions looked at for what has expired, while a put waits.
constexpr uint64_t kSlotsSweptPerStep = 16;
// The same ten times a second: a per mille of a processor, and if many of those with deadlines, one in ..., have
// expired, up to a few hundredths. Empty slots count little.
constexpr uint64_t kSweptAtOnceMin = 1024;
constexpr uint64_t kSweptAtOnceMax = 64 << 10;
constexpr uint64_t kManyExpired = 8;
constexpr uint64_t kSlotsPerLook = 64;
// Of that an object takes at least so much, since its key is looked up.
constexpr uint64_t kLookBytes = 512;

// The bytes of zeroes that these begin with, in whole granules.
uint64_t ZeroGranules(std::span<const std::byte> bytes) {
  const auto it = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  return AlignDown(static_cast<uint64_t>(it - bytes.begin()), format::kGranuleBytes);
}

}  // namespace

Cleaner::Cleaner(nvm::Pool& pool, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                 std::span<std::byte> control, CleanQueues& queues, const ServerTime& time)
    : nvm_(pool),
      geometry_(geometry),
      pool_seed_(pool_seed),
      shard_(shard),
      control_(control),
      counters_(control),
      queues_(queues),
      time_(time),
      index_(nvm_, geometry, shard, index::Published::In(control, geometry)),
      targets_(geometry.heads_per_shard) {}

bool Cleaner::Step() {
  (void)index_.Refresh();
  const bool told = TakeOrders();
  if (!to_zero_.empty()) return ZeroSome();
  const bool walked = WalkSome();
  return SweepSome() || walked || told;
}

bool Cleaner::TakeOrders() {
  bool any = false;
  while (const auto order = queues_.orders.Pop()) {
    any = true;
    switch (order->kind) {
      case CleanOrder::Kind::kMerge:
        walk_ = Walk{*order, 0, 0};
        no_segment_ = false;
        break;
      case CleanOrder::Kind::kSegment:
        needs_segment_ = false;
        Resume(*order, targets_[order->head - shard_ * geometry_.heads_per_shard]);
        break;
      case CleanOrder::Kind::kNoSegment:
        needs_segment_ = false;
        no_segment_ = true;
        break;
      case CleanOrder::Kind::kZero:
        to_zero_.insert(to_zero_.begin(), order->region);
        break;
      case CleanOrder::Kind::kSweep:
        sweeps_ = true;
        sweep_at_ = 0;
        next_deadline_ = UINT64_MAX;
        break;
    }
  }
  return any;
}

// --- Zeroes

bool Cleaner::ZeroSome() {
  if (queues_.proposals.room() == 0) return false;
  const uint32_t region = to_zero_.back();
  const uint64_t bytes = std::min(kStepBytes, geometry_.region_size - zeroed_);
  if (!Planted(Flaw::kNotZeroed)) nvm_.ZeroOut(geometry_.RegionOffset(region) + zeroed_, bytes);
  zeroed_ += bytes;
  if (zeroed_ < geometry_.region_size) return true;
  nvm_.Fence();
  zeroed_ = 0;
  to_zero_.pop_back();
  Propose({.kind = CleanProposal::Kind::kZeroed, .region = region});
  return true;
}

// --- Walking

Place Cleaner::PlaceAt(uint64_t at) const {
  const CleanOrder& order = walk_->order;
  return {pool_seed_, order.head, geometry_.AddressOf(order.slot, walk_->segment * geometry_.segment_size + at),
          order.generation};
}

std::span<const std::byte> Cleaner::BytesAt(uint64_t at) const {
  return nvm_.Bytes(SegmentOffset() + at, geometry_.segment_size - at);
}

// (C3) Entries move only away from their home, and are there before they are gone from here: a look at the slots in
// their order misses none. It may see one half of an entry that changes. One that went to another block is found there:
// by then the index has grown.
bool Cleaner::IsNeeded(const ObjectHeader& header, LogAddress address) {
  const auto names = [&](index::Slot /*slot*/, const IndexEntry& entry) {
    if (Planted(Flaw::kMovesUnsettled) && entry.entry_word().new_address() == address) return true;
    return entry.entry_word().NamesSettled(address);
  };
  bool found = false;
  do {
    found = index_.Find(header.key_hash, names).has_value();
  } while (!found && index_.Refresh());
  return found;
}

// In the order in which it was filled: then what is needed in it fits into one other region, even if the first segment
// there, which is a little smaller, begins with what stood in a later one.
std::optional<ObjectView> Cleaner::NextNeeded(bool* ended) {
  *ended = false;
  while (left_ > 0) {
    if (walk_->at >= geometry_.segment_size) {
      *walk_ = Walk{walk_->order, walk_->segment + 1};
    }
    if (walk_->segment == geometry_.segments_per_region()) {
      *ended = true;
      return std::nullopt;
    }
    if (walk_->at == 0) {
      const auto header = LoadAs<SegmentHeader>(BytesAt(0));
      const bool opened = header.identity == SegmentHeader::Identity(walk_->order.generation);
      nvm_.WillUse(SegmentOffset(), std::min(2 * nvm::Writer::kPieceAhead, geometry_.segment_size));
      // (A damaged header is no reason to leave objects behind.)
      walk_->at = opened || !IsZero(BytesAt(0).first(format::kGranuleBytes)) ? FirstObjectOffset(walk_->segment)
                                                                             : geometry_.segment_size;
      continue;
    }
    const bool in_chunk = walk_->in_chunk();
    const uint64_t limit = (in_chunk ? walk_->chunk_end : geometry_.segment_size) - walk_->at;
    const Place place = PlaceAt(walk_->at);
    const ObjectView view = format::InspectLabel(place, BytesAt(walk_->at));
    const ObjectHeader& header = view.header;
    const bool fits = format::ObjectBytes(header.label_size(), header.value_size) <= limit;
    const bool is_none = view.state == ObjectState::kNothing || (in_chunk ? !header.is_value() : !fits);
    if (is_none) {
      // The end, or damage: then good objects may stand behind it. Or what a client has written into its chunk.
      walk_->lost |= !in_chunk;
      Pass(std::max(ZeroGranules(BytesAt(walk_->at).first(std::min(left_, limit))), format::kGranuleBytes), 0);
      continue;
    }
    // The server wrote this header if the walk came here from the one before it. A client may have written any other:
    // into its chunk, or into a value. Of those only what an entry names is an object, and none is stepped over.
    const bool trusted = !in_chunk && (!walk_->lost || Planted(Flaw::kTrustsChunks));
    if (header.is_chunk()) {
      if (trusted) walk_->covered = 0;
      if (trusted) walk_->chunk_end = walk_->at + SpaceOf(header);
      Pass(trusted ? format::kChunkObjectsAt : format::kGranuleBytes, kLookBytes);
      continue;
    }
    if (!IsNeeded(header, place.address)) {
      Pass(trusted ? SpaceOf(header) : format::kGranuleBytes, kLookBytes);
      continue;
    }
    if (!in_chunk || (fits && walk_->at >= walk_->covered)) return view;
    // No two objects share bytes, and none reaches out of its chunk: a header was forged. To copy all such objects
    // would take more room than there is.
    moves_.push_back(
        {.kind = CleanProposal::Kind::kForged, .head = place.head, .key_hash = header.key_hash, .from = place.address});
    Pass(format::kGranuleBytes, kLookBytes);
  }
  return std::nullopt;
}

// In a chunk, and where the walk is lost, the next header may stand in the bytes of this object.
void Cleaner::PassObject(const ObjectHeader& header) {
  const uint64_t space = SpaceOf(header);
  const bool in_chunk = walk_->in_chunk();
  if (in_chunk) walk_->covered = walk_->at + space;
  Pass(in_chunk || walk_->lost ? format::kGranuleBytes : space, std::max(space, kLookBytes));
}

void Cleaner::Pass(uint64_t bytes, uint64_t cost) {
  nvm_.GoesOn(SegmentOffset() + walk_->at, SegmentOffset() + walk_->at + bytes,
              SegmentOffset() + geometry_.segment_size);
  walk_->at += bytes;
  walked_ += bytes;
  left_ -= std::min(left_, std::max(bytes, cost));
}

bool Cleaner::WalkSome() {
  if (!walk_ || needs_segment_) return false;
  if (queues_.proposals.room() < kMovesPerBatch + 4) return false;
  if (walked_ >= queues_.allowance.load(std::memory_order_relaxed)) return false;
  left_ = kStepBytes;
  bool ended = no_segment_;
  while (!ended && left_ > 0 && moves_.size() < kMovesPerBatch) {
    const auto object = NextNeeded(&ended);
    if (!object) break;
    const LogAddress address = PlaceAt(walk_->at).address;
    if (HasExpired(*object, address)) {
      moves_.push_back({.kind = CleanProposal::Kind::kExpire,
                        .head = walk_->order.head,
                        .key_hash = object->header.key_hash,
                        .from = address});
      PassObject(object->header);
      continue;
    }
    Target& target = targets_[walk_->order.head - shard_ * geometry_.heads_per_shard];
    if (!target.open || target.tail + SpaceOf(object->header) > geometry_.segment_size) {
      ProposeMoves();
      needs_segment_ = true;
      Propose(
          {.kind = CleanProposal::Kind::kNeedSegment, .head = walk_->order.head, .end = target.open ? target.tail : 0});
      return true;
    }
    Copy(*object, target);
    PassObject(object->header);
  }
  queues_.walked.store(walked_, std::memory_order_relaxed);
  if (ended || moves_.size() >= kMovesPerBatch) ProposeMoves();
  if (!ended) return true;
  Propose({.kind = CleanProposal::Kind::kMerged,
           .head = walk_->order.head,
           .region = walk_->order.region,
           .end = no_segment_ ? 0U : 1U});
  walk_.reset();
  return true;
}

// The value is copied first and verified then: what changes in between is found. What is damaged stays damaged: it gets
// a checksum that is none.
void Cleaner::Copy(const ObjectView& object, Target& target) {
  const auto from = BytesAt(walk_->at);
  const uint64_t space = SpaceOf(object.header);
  if (space > nvm::Writer::kPieceAhead) nvm_.WillUse(SegmentOffset() + walk_->at, space);
  const uint64_t label_size = object.header.label_size();
  const uint64_t to = target.offset + target.tail;
  const auto address = geometry_.AddressOf(target.slot, target.segment * geometry_.segment_size + target.tail);

  ObjectHeader header = object.header;
  header.previous = 0;  // nothing is older than what is settled
  header.flags &= static_cast<uint8_t>(~ObjectHeader::kLeft);
  header.header_crc = format::HeaderCrc({pool_seed_, walk_->order.head, address, target.generation}, header, object.key,
                                        object.deadline);
  const uint64_t value_at = to + format::ValueOffset(label_size);
  nvm_.Write(value_at, from.subspan(format::ValueOffset(label_size), header.value_size));
  const auto value = nvm_.Bytes(value_at, header.value_size);
  const auto stated = LoadAs<uint32_t>(from.subspan(format::ChecksumOffset(label_size)));
  const bool whole = format::ObjectChecksum(object.header, value) == stated || Planted(Flaw::kCopiesUnverified);
  uint32_t checksum = format::ObjectChecksum(header, value);
  if (!whole) checksum = ~checksum;
  nvm_.Write(to, BytesOf(header));
  nvm_.Write(to + format::kLabelOffset, from.subspan(format::kLabelOffset, label_size));
  nvm_.Write(to + format::ChecksumOffset(label_size), BytesOf(checksum));
  if (!Planted(Flaw::kCopyNotFlushed)) nvm_.Flush(to, space);
  target.tail += space;
  const LogAddress original = PlaceAt(walk_->at).address;
  moves_.push_back({.kind = CleanProposal::Kind::kMove,
                    .head = walk_->order.head,
                    .region = walk_->order.region,
                    .key_hash = header.key_hash,
                    .from = original,
                    .to = address});
  counters_.Add(Counter::kCleanBytesCopied, space);
}

// (C4)
void Cleaner::ProposeMoves() {
  if (moves_.empty()) return;
  if (!Planted(Flaw::kCopyNotFlushed)) nvm_.Fence();
  for (const CleanProposal& move : moves_) Propose(move);
  moves_.clear();
  counters_.Set(Counter::kCleanNvmBytes, nvm_.counters().bytes);
}

// There was room for it (WalkSome, ZeroSome).
void Cleaner::Propose(const CleanProposal& proposal) {
  (void)queues_.proposals.Push(proposal);
  ++proposed_;
}

// --- Scrubbing

// As a client does: the entry, the slot of its head, the object, and if that is not whole, the first two again. A
// region that is emptied meanwhile is not filled with zeroes before this is over: that is for the same thread.
bool Cleaner::IsDamaged(const IndexEntry& entry, uint64_t* bytes) const {
  const auto named = FindNamed(entry);
  if (!named) return true;
  const ObjectView view = format::InspectObject(named->place, named->bytes);
  *bytes = view.state == ObjectState::kNothing ? format::kGranuleBytes : SpaceOf(view.header);
  const bool whole =
      view.state == ObjectState::kWhole && format::EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag();
  return !whole && SlotNow(named->slot_word) == named->slot;
}

format::HeadSlot Cleaner::SlotNow(uint64_t* slot_word) {
  return format::HeadSlot(std::atomic_ref(*slot_word).load(std::memory_order_acquire));
}

std::optional<Cleaner::Named> Cleaner::FindNamed(const IndexEntry& entry) const {
  const uint32_t head = HeadOf(entry);
  const uint32_t head_in_shard = head - shard_ * geometry_.heads_per_shard;  // huge if it is an earlier shard's
  const LogAddress address = entry.entry_word().new_address();
  const uint64_t offset = geometry_.OffsetInRegion(address);
  const uint32_t slot_number = geometry_.SlotOf(address);
  if (head_in_shard >= geometry_.heads_per_shard || slot_number >= geometry_.slots_per_head()) return std::nullopt;
  auto* const word =
      reinterpret_cast<uint64_t*>(control_.data() + format::HeadSlotOffset(geometry_, head_in_shard, slot_number));
  const format::HeadSlot slot = SlotNow(word);
  if (slot.none()) return std::nullopt;
  const uint64_t in_segment = offset % geometry_.segment_size;
  const auto bytes = nvm_.Bytes(geometry_.RegionOffset(slot.region()) + offset, geometry_.segment_size - in_segment);
  return Named{{pool_seed_, head, address, slot.generation()}, bytes, word, slot};
}

void Cleaner::Scrub(uint64_t bytes) {
  (void)index_.Refresh();
  uint64_t scrubbed = 0;
  // Empty slots are passed, too, but not for ever.
  for (uint64_t slots = 0; scrubbed < bytes && slots < bytes / sizeof(IndexEntry); ++slots) {
    const index::Slot slot = scrubbed_;
    scrubbed_ = scrubbed_ + 1 < index_.size() ? scrubbed_ + 1 : 0;
    const IndexEntry entry = index_.At(slot);
    if (entry.word == 0 || !entry.entry_word().settled()) continue;
    uint64_t of_object = format::kGranuleBytes;
    const bool damaged = IsDamaged(entry, &of_object);
    scrubbed += of_object;
    const IndexEntry now = index_.At(slot);
    if (!damaged || now.word != entry.word || HeadOf(now) != HeadOf(entry)) continue;
    if (queues_.proposals.room() < kMovesPerBatch + 4) break;
    Propose({.kind = CleanProposal::Kind::kDamaged,
             .head = HeadOf(entry),
             .from = entry.entry_word().new_address(),
             .index_slot = slot});
  }
  counters_.Add(Counter::kScrubBytes, scrubbed);
}

// --- Expiry

bool Cleaner::HasExpired(const ObjectView& object, LogAddress address) const {
  if (!time_.Passed(object.deadline)) return false;
  const auto names = [&](index::Slot /*slot*/, const IndexEntry& entry) {
    const auto word = entry.entry_word();
    return word.settled() && word.new_address() == address;
  };
  return index_.Find(object.header.key_hash, names).has_value();
}

// Splits take entries to the end of the index alone, so a round that goes to the end of what is there by then meets
// all.
Cleaner::Swept Cleaner::SweepSlots(index::Slot* next, uint64_t looks) {
  Swept swept;
  (void)index_.Refresh();
  const index::Slot end = std::min(*next + looks * kSlotsPerLook, index_.size());
  for (; *next < end && looks > 0 && queues_.proposals.room() >= kMovesPerBatch + 4; ++*next, ++swept.slots) {
    const IndexEntry entry = index_.At(*next);
    if (entry.word == 0) continue;
    --looks;
    if (!entry.entry_word().settled()) {
      swept.unsettled = true;
      continue;
    }
    const auto named = FindNamed(entry);
    const ObjectView view = named ? format::InspectHeader(named->place, named->bytes) : ObjectView();
    if (view.state == ObjectState::kNothing) swept.unsettled = true;  // damage, or it has just changed
    if (view.state == ObjectState::kNothing || view.deadline == 0) continue;
    ++swept.expiring;
    if (!time_.Passed(view.deadline)) {
      swept.next_deadline = std::min(swept.next_deadline, view.deadline);
      continue;
    }
    ++swept.expired;
    Propose({.kind = CleanProposal::Kind::kExpire,
             .head = HeadOf(entry),
             .key_hash = view.header.key_hash,
             .from = entry.entry_word().new_address()});
  }
  return swept;
}

bool Cleaner::SweepSome() {
  if (!sweeps_) return false;
  const Swept swept = SweepSlots(&sweep_at_, kSlotsSweptPerStep);
  next_deadline_ = std::min(next_deadline_, swept.next_deadline);
  (void)index_.Refresh();
  if (sweep_at_ < index_.size()) return swept.slots > 0;
  if (queues_.proposals.room() == 0) return false;
  Propose({.kind = CleanProposal::Kind::kSwept, .end = next_deadline_ == UINT64_MAX ? 0 : next_deadline_});
  sweeps_ = false;
  return true;
}

// What was counted just before a round may be published behind it, and is found in the next one.
void Cleaner::Sweep() {
  if (!queues_.MayExpire()) return;
  if (swept_ == 0) round_ = {queues_.expiring_puts.load(std::memory_order_relaxed), false};
  sweep_looks_ = std::clamp(sweep_looks_, kSweptAtOnceMin, kSweptAtOnceMax);
  const Swept swept = SweepSlots(&swept_, sweep_looks_);
  round_.found |= swept.expiring > 0 || swept.unsettled;
  const bool many = swept.expired * kManyExpired > swept.expiring;
  sweep_looks_ = many ? sweep_looks_ * 2 : sweep_looks_ / 2;
  (void)index_.Refresh();
  if (swept_ < index_.size()) return;
  swept_ = 0;
  const bool none = !round_.found && !round_before_.found && round_.expiring_puts == round_before_.expiring_puts;
  if (none) queues_.none_left_of.store(round_before_.expiring_puts, std::memory_order_relaxed);
  round_before_ = round_;
}

// --- Where copies go

// Behind the last copy that an entry names there may be others that an earlier server's cleaner did not get to propose:
// torn, or in the caches only. If that last one is damaged nobody knows its end: then the segment is full.
void Cleaner::Resume(const CleanOrder& order, Target& target) {
  target = {true,
            order.generation,
            order.slot,
            order.segment,
            geometry_.RegionOffset(order.region) + order.segment * geometry_.segment_size,
            FirstObjectOffset(order.segment)};
  if (!order.begun) return;
  if (order.last_copy != 0) {
    const auto address = geometry_.AddressOf(order.slot, order.segment * geometry_.segment_size + order.last_copy);
    const auto bytes = nvm_.Bytes(target.offset + order.last_copy, geometry_.segment_size - order.last_copy);
    const auto last = format::InspectHeader({pool_seed_, order.head, address, order.generation}, bytes);
    target.tail = last.state == ObjectState::kNothing ? geometry_.segment_size : order.last_copy + SpaceOf(last.header);
  }
  nvm_.ZeroOut(target.offset + target.tail, geometry_.segment_size - target.tail);
  nvm_.Fence();
}

}  // namespace erda::server
