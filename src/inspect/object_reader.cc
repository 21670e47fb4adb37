#include "inspect/object_reader.h"

#include <algorithm>

namespace erda::inspect {

using format::LogAddress;
using format::ObjectState;
using format::SegmentHeader;

std::span<const std::byte> ObjectReader::BytesAt(uint32_t head, LogAddress address) const {
  const uint32_t region = regions_.RegionAt(head, address);
  if (region == LinkedRegions::kNoRegion) return {};
  const uint64_t in_region = geometry_.OffsetInRegion(address);
  const uint64_t offset = geometry_.RegionOffset(region) + in_region;
  const uint64_t in_segment = geometry_.segment_size - in_region % geometry_.segment_size;
  const auto* chunk = static_cast<const ClientChunks&>(chunks_).Find(offset);
  return bytes_.At(offset, chunk == nullptr ? in_segment : std::min(in_segment, chunk->end - offset));
}

format::Place ObjectReader::PlaceOf(uint32_t head, LogAddress address) const {
  const uint32_t region = regions_.RegionAt(head, address);
  const bool linked = region != LinkedRegions::kNoRegion;
  return {bytes_.seed(), head, address, linked ? bytes_.RegionWordOf(region).generation() : 0};
}

ClientChunks::Chunk* ObjectReader::ChunkOf(uint32_t head, LogAddress address) {
  const uint32_t region = regions_.RegionAt(head, address);
  if (region == LinkedRegions::kNoRegion) return nullptr;
  return chunks_.Find(geometry_.RegionOffset(region) + geometry_.OffsetInRegion(address));
}

ObjectReader::Read ObjectReader::Whole(uint32_t head, LogAddress address) {
  Read read;
  read.view = Header(head, address);
  if (read.view.state == ObjectState::kNothing) return read;
  const uint64_t space = SpaceOf(read.view.header);
  ClientChunks::Chunk* const chunk = ChunkOf(head, address);
  uint64_t& budget = chunk != nullptr ? chunk->budget : budget_;
  bool& spent = chunk != nullptr ? chunk->claims_more : budget_spent_;
  spent |= space > budget;
  read.over_budget = spent;
  if (spent) return read;
  budget -= space;
  read.view = format::InspectObject(PlaceOf(head, address), BytesAt(head, address));
  if (read.view.state == ObjectState::kWhole) {
    ++report_.verified;
    report_.verified_bytes += space;
  }
  return read;
}

void ObjectReader::CountLive(uint32_t head, LogAddress address, uint64_t space) {
  if (ClientChunks::Chunk* const chunk = ChunkOf(head, address)) {
    chunk->claims_more |= space > chunk->not_live;
    space = std::min(space, chunk->not_live);
    chunk->not_live -= space;
  }
  report_.live_bytes += space;
}

bool ObjectReader::SegmentSaysSettled(uint32_t head, LogAddress address) const {
  const uint64_t in_region = geometry_.OffsetInRegion(address);
  const uint64_t begin = AlignDown(in_region, geometry_.segment_size);
  const auto header = bytes_.Load<SegmentHeader>(geometry_.RegionOffset(regions_.RegionAt(head, address)) + begin);
  return header.settled() || in_region - begin < header.Marked(geometry_.segment_size).value_or(0);
}

}  // namespace erda::inspect
