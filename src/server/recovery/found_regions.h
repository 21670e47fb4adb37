// Finds the head slot of each region of a shard's log again after a power cut. The region table may be older than the
// regions, so their objects count as well: each object verifies in one place only. Owns its findings; changes nothing
// in the pool. The thread that starts the shard calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "erda/status.h"
#include "format/geometry.h"
#include "format/object.h"
#include "nvm/writer.h"
#include "server/recovery/region_bytes.h"

namespace erda::server {

struct FoundRegion {
  uint32_t generation = 0;
  uint32_t head = 0;  // of the shard
  uint32_t slot = 0;
  uint32_t score = 0;  // number of segments whose headers have this generation
  bool linked = false;
  std::vector<bool> named;  // by segment: whether an entry leads there
};

class FoundRegions {
 public:
  FoundRegions(const nvm::Writer& nvm, const RegionBytes& bytes, const format::Geometry& geometry, uint32_t pool_seed,
               uint32_t shard);

  // Reads the regions. Returns kCorruption if the generations are used up.
  Status Look();
  // REQUIRES for all below: Look was ok.
  // number: of the region in the shard.
  [[nodiscard]] const FoundRegion& At(uint32_t number) const { return regions_[number]; }
  // Returns a generation that no region of the shard has had.
  [[nodiscard]] uint32_t NextGeneration() const;
  // Returns the object at an address, or kNothing if no region is there.
  [[nodiscard]] format::ObjectView Inspect(uint32_t head, format::LogAddress address) const;
  // Notes that an entry leads to this address.
  void MarkNamed(uint32_t head, format::LogAddress address);

 private:
  static constexpr uint32_t kNoRegion = UINT32_MAX;

  void Place(uint32_t number);
  void SeeGenerations(uint32_t region);
  [[nodiscard]] FoundRegion FromWord(uint32_t region) const;
  [[nodiscard]] FoundRegion FromObjects(uint32_t region) const;
  // Finds the place where the first object of the segment verifies. Returns false if it verifies nowhere.
  bool FindPlace(uint32_t region, uint64_t segment, FoundRegion* found) const;
  [[nodiscard]] uint32_t CountHeaders(uint32_t region, uint32_t generation) const;
  // Returns the number of the region that the address is in, or kNoRegion.
  [[nodiscard]] uint32_t NumberAt(uint32_t head, format::LogAddress address) const;
  [[nodiscard]] uint32_t first_head() const { return shard_ * geometry_.heads_per_shard; }

  const nvm::Writer& nvm_;
  const RegionBytes& bytes_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t shard_;
  std::vector<FoundRegion> regions_;          // by number in the shard
  std::vector<std::vector<uint32_t>> heads_;  // by head of the shard and slot: a region's number
  uint32_t newest_generation_ = 0;
};

}  // namespace erda::server
