// The numbers of one shard's log: which heads and regions belong to the shard, and where a segment stands in the pool.
//
// Owns nothing that changes, so any thread may call it. Requires: the geometry outlives it.
#pragma once

#include <bit>
#include <cstdint>

#include "format/geometry.h"
#include "format/log_address.h"

namespace erda::log {

inline constexpr uint32_t kNoRegion = UINT32_MAX;

// A region, and a segment in it.
struct SegmentId {
  uint32_t region = kNoRegion;
  uint64_t segment = 0;
  [[nodiscard]] bool none() const { return region == kNoRegion; }
  bool operator==(const SegmentId&) const = default;
};

// The numbers from `first` on and below `last`, to loop over.
template <class Number>
struct Numbers {
  struct Iterator {
    Number at;
    Number operator*() const { return at; }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  [[nodiscard]] Iterator begin() const { return {first}; }
  [[nodiscard]] Iterator end() const { return {last}; }
  Number first;
  Number last;
};

class ShardShape {
 public:
  ShardShape(const format::Geometry& geometry, uint32_t shard)
      : geometry_(geometry),
        shard_(shard),
        first_head_(shard * geometry.heads_per_shard),
        shard_part_((uint64_t{1} << 32) / geometry.shards + 1),
        segment_shift_(std::countr_zero(geometry.segment_size)),
        region_segments_shift_(std::countr_zero(geometry.segments_per_region())) {}

  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  // Returns the numbers of the shard's heads in the pool.
  [[nodiscard]] Numbers<uint32_t> heads() const { return {first_head_, first_head_ + geometry_.heads_per_shard}; }
  [[nodiscard]] bool HasHead(uint32_t head) const { return HeadInShard(head) < geometry_.heads_per_shard; }
  // Returns the head's number in the shard. For a head of another shard it is not below heads_per_shard.
  [[nodiscard]] uint32_t HeadInShard(uint32_t head) const { return head - first_head_; }
  // Returns the numbers of the slots that each head has.
  [[nodiscard]] Numbers<uint32_t> slots() const { return {0, geometry_.slots_per_head()}; }

  // Returns a region's number in the pool. number: its number in the shard.
  [[nodiscard]] uint32_t RegionOf(uint32_t number) const { return geometry_.RegionOf(shard_, number); }
  // Returns the same as geometry_.NumberInShard, without a division, which would make each put slower. The result is
  // exact if the product of both limits below has at most 32 bits.
  [[nodiscard]] uint32_t NumberOf(uint32_t region) const {
    static_assert(uint64_t{format::kRegionsMax} * format::kShardsMax < uint64_t{1} << 32);
    return static_cast<uint32_t>((region * shard_part_) >> 32);
  }

  // Returns the numbers of the segments in a region. The size of a segment and the number of segments in a region are
  // powers of two.
  [[nodiscard]] Numbers<uint64_t> segments() const { return {0, geometry_.segments_per_region()}; }
  // Returns the segment's number in the shard. Segments are numbered region by region.
  [[nodiscard]] uint64_t SegmentNumber(SegmentId id) const {
    return (uint64_t{NumberOf(id.region)} << region_segments_shift_) + id.segment;
  }
  [[nodiscard]] SegmentId SegmentOf(uint32_t region, format::LogAddress address) const {
    return {region, geometry_.OffsetInRegion(address) >> segment_shift_};
  }
  [[nodiscard]] uint64_t OffsetInSegment(format::LogAddress address) const {
    return geometry_.OffsetInRegion(address) & (geometry_.segment_size - 1);
  }
  [[nodiscard]] uint64_t OffsetInRegion(uint64_t segment, uint64_t in_segment) const {
    return (segment << segment_shift_) + in_segment;
  }
  // Returns the offset of the segment in the pool.
  [[nodiscard]] uint64_t SegmentOffset(SegmentId id) const {
    return geometry_.RegionOffset(id.region) + (id.segment << segment_shift_);
  }

 private:
  const format::Geometry& geometry_;
  const uint32_t shard_;
  const uint32_t first_head_;
  const uint64_t shard_part_;  // (1 << 32) / shards, rounded up
  const int segment_shift_;
  const int region_segments_shift_;
};

}  // namespace erda::log
