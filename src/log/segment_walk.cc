#include "log/segment_walk.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/planted.h"
#include "log/segment_headers.h"

namespace erda::log {

using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

namespace {

// Calls `visit` with the objects in a chunk. Returns how many bytes the chunk takes. chunk_place: where the chunk
// begins. bytes: from there to the end of the segment.
//
// The server wrote the chunk's header, and the client may have written anything in the chunk. So the walk looks at each
// granule, and no header can hide an object after it. If an object does not begin where the one before it ends, that is
// damage, or the client's doing. A client with a window can do no other harm, and must not make the server look through
// the index. So the walk clears `plain` only if the chunk has no window.
uint64_t WalkChunk(const format::Place& chunk_place, std::span<const std::byte> bytes,
                   const format::ObjectHeader& chunk, uint64_t first_version, const Visit* visit, bool* plain) {
  const uint64_t end = SpaceOf(chunk);
  const uint64_t limit = Planted(Flaw::kTrustsChunks) ? bytes.size() : end;
  const LogAddress address = chunk_place.address;
  format::Place place = chunk_place;
  uint64_t next = format::kChunkObjectsAt;  // where the next object begins, if the client keeps the form
  bool in_form = true;
  for (uint64_t at = next; at < end; at += format::kGranuleBytes) {
    if (Planted(Flaw::kTrustsChunks) && at != next) continue;
    place.address = LogAddress::At(address.slot(), address.offset_in_slot() + at);
    const auto rest = bytes.subspan(at, limit - at);
    const ObjectView view = format::InspectHeader(place, rest);
    const bool is_object =
        view.state != ObjectState::kNothing && view.header.is_value() && view.header.version >= first_version;
    if (is_object && visit != nullptr) (*visit)(view);
    if (!in_form || at != next) continue;
    in_form = is_object;
    if (is_object) {
      next += SpaceOf(view.header);
    } else if (!chunk.has_window()) {
      *plain = *plain && IsZero(rest.first(std::min(sizeof(format::ObjectHeader), rest.size())));
    }
  }
  return Planted(Flaw::kTrustsChunks) ? std::max(next, end) : end;
}

}  // namespace

Walk WalkObjects(const nvm::Writer& nvm, const ShardShape& shape, const Objects& objects, uint32_t head, uint32_t slot,
                 SegmentId id, const Visit* visit) {
  const format::SegmentHeader header = HeaderOf(nvm, shape, id);
  const uint64_t segment_size = shape.geometry().segment_size;
  Walk walk;
  uint64_t& at = walk.end;
  at = std::max(format::FirstObjectOffset(id.segment), header.Marked(segment_size).value_or(0));
  walk.begin = at;
  nvm.WillUse(shape.SegmentOffset(id) + at, segment_size - at);
  while (at < segment_size) {
    const auto address = shape.geometry().AddressOf(slot, shape.OffsetInRegion(id.segment, at));
    const auto bytes = nvm.Bytes(shape.SegmentOffset(id) + at, segment_size - at);
    const format::Place place = objects.PlaceOf(head, address);
    const ObjectView view = format::InspectHeader(place, bytes);
    if (view.state == ObjectState::kNothing || view.header.version < header.oldest_version()) {
      walk.untouched = IsZero(bytes);
      return walk;
    }
    walk.last = at;
    if (view.header.is_chunk()) {
      at += WalkChunk(place, bytes, view.header, header.oldest_version(), visit, &walk.plain);
      continue;
    }
    if (visit != nullptr) (*visit)(view);
    at += SpaceOf(view.header);
  }
  return walk;
}

Tombstone TombstoneIn(const ShardShape& shape, const Objects& objects, uint32_t head, uint32_t slot) {
  const auto address = shape.geometry().AddressOf(slot, format::kTombstoneSlotOffset);
  const auto bytes = objects.BytesAt(head, address).first(format::kTombstoneSlotBytes);
  const ObjectView view = format::InspectHeader(objects.PlaceOf(head, address), bytes);
  return {view, view.state == ObjectState::kNothing && !IsZero(bytes)};
}

}  // namespace erda::log
