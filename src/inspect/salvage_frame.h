// How a pool is cut, and its seed, where the superblocks may tell neither.
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
  std::optional<HashSeed> hash_seed;  // a superblock that verifies has it, and nothing else
  FrameSource source = FrameSource::kSuperblock;
};
Result<SalvageFrame> FindSalvageFrame(std::span<const std::byte> pool, const SalvageOptions& options);

// An object that is whole by its own word: its checksum goes on from its header crc. Where it stands is not checked.
struct LoneObject {
  format::ObjectHeader header{};
  std::string_view key;
  uint64_t deadline = 0;
};
// Looks for them in a segment, and spends no more than its budget of bytes on checksums.
class LoneObjects {
 public:
  explicit LoneObjects(uint64_t budget) : budget_(budget) {}
  [[nodiscard]] std::optional<LoneObject> At(std::span<const std::byte> bytes);

 private:
  uint64_t budget_;
};

// The word of a region, if it says that the region is linked, and where it can be.
inline std::optional<format::RegionWord> LinkedWord(const format::Geometry& g, uint32_t region,
                                                    format::RegionWord word) {
  const bool whole = word.IsWholeLink();
  if (!whole || word.SlotIn(g) >= g.slots_per_head() || word.HeadIn(g) / g.heads_per_shard != region % g.shards) {
    return std::nullopt;
  }
  return word;
}

// The generation that a segment's header tells, of whatever use of the region.
inline std::optional<uint32_t> GenerationIn(std::span<const std::byte> segment) {
  if (segment.size() < sizeof(format::SegmentHeader)) return std::nullopt;
  const auto header = LoadAs<format::SegmentHeader>(segment);
  const auto generation = static_cast<uint32_t>(header.identity);
  if (header.identity == 0 || header.identity != format::SegmentHeader::Identity(generation)) return std::nullopt;
  return generation;
}

}  // namespace erda::inspect
