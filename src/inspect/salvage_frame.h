// The frame of a salvage: the geometry and the seed of the pool, although the superblocks may tell neither.
//
// Any thread may call these functions. They read the pool's bytes, and change nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"
#include "erda/status.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "inspect/salvage.h"

namespace erda::inspect {

struct SalvageFrame {
  format::Geometry geometry{};
  uint32_t seed = 0;
  std::optional<HashSeed> hash_seed;  // Only a superblock that verifies tells it.
  FrameSource source = FrameSource::kSuperblock;
};
Result<SalvageFrame> FindSalvageFrame(std::span<const std::byte> pool, const SalvageOptions& options);

// An object that is whole if its header crc is right: its checksum continues from that crc. Its place is not checked.
struct LoneObject {
  format::ObjectHeader header{};
  std::string_view key;
  uint64_t deadline = 0;
};
// Looks for lone objects, and computes checksums of no more bytes than its budget. One thread uses it.
class LoneObjects {
 public:
  explicit LoneObjects(uint64_t budget) : budget_(budget) {}
  // Returns the object at the beginning of the bytes, if one is there.
  [[nodiscard]] std::optional<LoneObject> At(std::span<const std::byte> bytes);

 private:
  uint64_t budget_;
};

// Returns the word of a region, if it links the region to a place that the region can have.
inline std::optional<format::RegionWord> LinkedWord(const format::Geometry& g, uint32_t region,
                                                    format::RegionWord word) {
  const bool whole = word.IsWholeLink();
  if (!whole || word.SlotIn(g) >= g.slots_per_head() || word.HeadIn(g) / g.heads_per_shard != region % g.shards) {
    return std::nullopt;
  }
  return word;
}

// Returns the generation that a segment's header tells. It may be that of an earlier use of the region.
inline std::optional<uint32_t> GenerationIn(std::span<const std::byte> segment) {
  if (segment.size() < sizeof(format::SegmentHeader)) return std::nullopt;
  const auto header = LoadAs<format::SegmentHeader>(segment);
  const auto generation = static_cast<uint32_t>(header.identity);
  if (header.identity == 0 || header.identity != format::SegmentHeader::Identity(generation)) return std::nullopt;
  return generation;
}

}  // namespace erda::inspect
