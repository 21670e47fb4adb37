#include "server/cleaner/region_walk.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"
#include "format/log_layout.h"

namespace erda::server {

namespace {

// An object takes at least as much work as this many bytes, since the walk looks up its key.
constexpr uint64_t kLookBytes = 512;
// In a chunk the walk looks for the next header. That takes as much work as a copy of one byte in this many.
constexpr uint64_t kPassedPerCopied = 8;

// Returns how many bytes of zeroes, in whole granules, `bytes` begins with.
uint64_t ZeroGranules(std::span<const std::byte> bytes) {
  const auto it = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  return AlignDown(static_cast<uint64_t>(it - bytes.begin()), format::kGranuleBytes);
}

}  // namespace

// The walk goes in the order in which the region was filled. So the needed objects fit into one other region. The first
// segment of a region is a little smaller than the others. It may get objects that stood in a later segment here.
RegionWalk::Found RegionWalk::Next(WalkBudget* budget) {
  Found found;
  while (budget->left > 0) {
    if (spot_.at >= geometry_.segment_size) {
      ++segment_;
      spot_ = {};
    }
    if (segment_ == geometry_.segments_per_region()) return {.at = At::kEnd, .object = {}};
    if (Skip()) continue;
    if (spot_.at == 0) {
      EnterSegment();
    } else if (spot_.in_chunk() && PassToValue(budget)) {
      continue;
    } else if (LookAtHeader(&found, budget)) {
      return found;
    }
  }
  return found;
}

bool RegionWalk::Skip() {
  while (next_held_ < order_.held.size() && order_.held[next_held_].to <= at_in_region()) ++next_held_;
  const bool any_left = next_held_ < order_.held.size();
  if (order_.phase == CleanPhase::kReplicate) {
    if (!any_left) {
      JumpTo(geometry_.segments_per_region(), 0, 0);
      return true;
    }
    const HeldPlace& held = order_.held[next_held_];
    if (at_in_region() >= held.from) return false;
    const uint64_t segment = held.from / geometry_.segment_size;
    const uint64_t begin = segment * geometry_.segment_size;
    JumpTo(segment, held.from - begin, held.in_chunk ? held.to - begin : 0);
    return true;
  }
  if (!any_left || at_in_region() < order_.held[next_held_].from || Planted(Flaw::kMovesUnsettled)) return false;
  // A held place may be a put in a chunk that has ended: the put waits for the disk. Its bytes end within the chunk.
  const uint64_t to = order_.held[next_held_].to - segment_ * geometry_.segment_size;
  JumpTo(segment_, to, to < spot_.chunk_end ? spot_.chunk_end : 0);
  return true;
}

// The shard knows where a held place begins and ends. So the walk is never lost there, nor after it.
void RegionWalk::JumpTo(uint64_t segment, uint64_t at, uint64_t chunk_end) {
  segment_ = segment;
  spot_ = {.at = at, .chunk_end = chunk_end};
}

uint64_t RegionWalk::Limit() const {
  const uint64_t left = (spot_.in_chunk() ? spot_.chunk_end : geometry_.segment_size) - spot_.at;
  if (next_held_ == order_.held.size()) return left;
  const HeldPlace& held = order_.held[next_held_];
  const uint64_t bound = order_.phase == CleanPhase::kReplicate ? held.to : held.from;
  return bound > at_in_region() ? std::min(left, bound - at_in_region()) : left;
}

// The walk skips a segment only if it begins with zeroes. It must not leave objects in a segment with a damaged header.
void RegionWalk::EnterSegment() {
  const auto header = LoadAs<format::SegmentHeader>(bytes());
  const bool opened = header.identity == format::SegmentHeader::Identity(order_.generation);
  nvm_.WillUse(SegmentOffset(), std::min(2 * nvm::Writer::kPieceAhead, geometry_.segment_size));
  spot_.at = opened || !IsZero(bytes().first(format::kGranuleBytes)) ? format::FirstObjectOffset(segment_)
                                                                     : geometry_.segment_size;
}

bool RegionWalk::PassToValue(WalkBudget* budget) {
  const uint64_t most = AlignUp(budget->left * kPassedPerCopied, format::kGranuleBytes);
  const uint64_t passed = format::BytesWithoutValue(bytes().first(std::min(Limit(), most)));
  if (passed == 0) return false;
  PassBytes(passed, passed / kPassedPerCopied, budget);
  return true;
}

bool RegionWalk::LookAtHeader(Found* found, WalkBudget* budget) {
  const bool in_chunk = spot_.in_chunk();
  const uint64_t limit = Limit();
  const format::Place place{pool_seed_, order_.head, geometry_.AddressOf(order_.slot, at_in_region()),
                            order_.generation};
  const format::ObjectView view = format::InspectLabel(place, bytes());
  const format::ObjectHeader& header = view.header;
  const bool fits = format::ObjectBytes(header.label_size(), header.value_size) <= limit;
  const bool no_object = view.state == format::ObjectState::kNothing || (in_chunk ? !header.is_value() : !fits);
  if (no_object) {
    // This is the end, or damage with good objects after it. In a chunk it may be any bytes that the client has
    // written.
    spot_.lost |= !in_chunk;
    const uint64_t zeroes = ZeroGranules(bytes().first(std::min(budget->left, limit)));
    const uint64_t passed = std::max(zeroes, format::kGranuleBytes);
    PassBytes(passed, passed, budget);
    return false;
  }
  // If the walk came here from the header before, the server wrote this header. A client may have written any other
  // header: into its chunk, or into a value. Of those, only an object that an entry names counts, and the walk looks at
  // every granule after it.
  const bool trusted = !in_chunk && (!spot_.lost || Planted(Flaw::kTrustsChunks));
  if (header.is_chunk()) {
    if (trusted) spot_.covered = 0;
    if (trusted) spot_.chunk_end = spot_.at + SpaceOf(header);
    PassBytes(trusted ? format::kChunkObjectsAt : format::kGranuleBytes, kLookBytes, budget);
    return false;
  }
  if (!IsNeeded(header.key_hash, place.address)) {
    PassBytes(trusted ? SpaceOf(header) : format::kGranuleBytes, kLookBytes, budget);
    return false;
  }
  // No two objects share bytes, and no object reaches out of its chunk, unless a client has forged a header. Copies of
  // all such objects could take more room than there is.
  const bool forged = in_chunk && (!fits || spot_.at < spot_.covered);
  *found = {forged ? At::kForgery : At::kObject, view, place, SegmentOffset() + spot_.at};
  if (forged) PassBytes(format::kGranuleBytes, kLookBytes, budget);
  return true;
}

// (C3) Entries move only away from their home, and are in the new slot before they leave the old one. So a look at the
// slots in their order misses no entry. It may see one half of an entry that changes. An entry that a split took to
// another block is found there: the index has grown then, and Refresh says so.
bool RegionWalk::IsNeeded(uint64_t key_hash, format::LogAddress address) {
  const auto names = [&](index::Slot /*slot*/, const format::IndexEntry& entry) {
    if (Planted(Flaw::kMovesUnsettled) && entry.entry_word().new_address() == address) return true;
    return entry.entry_word().NamesSettled(address);
  };
  bool found = false;
  do {
    found = index_.Find(key_hash, names).has_value();
  } while (!found && index_.Refresh());
  return found;
}

// In a chunk, and where the walk is lost, the next header may stand in the bytes of this object.
void RegionWalk::Pass(const format::ObjectHeader& header, WalkBudget* budget) {
  const uint64_t space = SpaceOf(header);
  const bool in_chunk = spot_.in_chunk();
  if (in_chunk) spot_.covered = spot_.at + space;
  PassBytes(in_chunk || spot_.lost ? format::kGranuleBytes : space, std::max(space, kLookBytes), budget);
}

void RegionWalk::PassBytes(uint64_t bytes, uint64_t cost, WalkBudget* budget) {
  const uint64_t from = SegmentOffset() + spot_.at;
  nvm_.GoesOn(from, from + bytes, SegmentOffset() + geometry_.segment_size);
  spot_.at += bytes;
  budget->walked += bytes;
  budget->left -= std::min(budget->left, cost);
}

}  // namespace erda::server
