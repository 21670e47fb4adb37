// Takes the values of one shard out of a pool that does not open (salvage.h).
//
// A region is read if it is known where it belongs: by the region table, or, where that says nothing, by the checksums
// of its objects (FindPlace). The index comes first: what it names and what verifies is named. Then each segment is
// walked, from header to header, and granule by granule where none verifies.
//
// An object is *proven* if the server wrote its header for certain: the walk came from the segment's beginning by
// headers that all verify, and it stands in no chunk. A client with a window may write any header into its own chunk,
// and a client may put a value that holds headers: a walk that lost its way could take one for an object. So what is
// not proven never wins over what the index names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "format/log_layout.h"
#include "inspect/salvage.h"
#include "inspect/salvage_frame.h"

namespace erda::inspect {

class ShardSalvager {
 public:
  ShardSalvager(std::span<const std::byte> pool, const SalvageFrame& frame, uint32_t shard,
                const SalvageOptions& options, SalvageReport* report);

  Status Run(const TakeValue& take);

 private:
  struct Region {
    bool placed = false;
    uint32_t head = 0;
    uint32_t slot = 0;
    std::vector<uint32_t> generations;  // that its objects may have been written with
    std::optional<uint32_t> run;        // of the index
    bool unused = false;                // says the region table
  };
  // The version of a key that is taken, as far as is known. A newer one that is proven takes the place of a named one,
  // and the key stays named: nothing that is not proven takes its place then.
  struct Best {
    enum Flag : uint64_t {
      kNamed = 1,    // the index names the key, and so this version
      kDamaged = 2,  // and its value is damaged
      kDeleted = 4,  // it is a tombstone
    };
    uint64_t version = 0;
    uint64_t offset_and_flags = 0;  // in the pool, of a granule; Flag

    [[nodiscard]] uint64_t offset() const { return offset_and_flags & ~(format::kGranuleBytes - 1); }
    [[nodiscard]] bool is(Flag flag) const { return (offset_and_flags & flag) != 0; }
    void Add(Flag flag) { offset_and_flags |= flag; }
  };
  struct LostEntry {
    uint64_t slot = 0;
    uint32_t distance = 0;
    bool told = false;
  };

  [[nodiscard]] Region& RegionAt(uint32_t region) { return regions_[g_.NumberInShard(region)]; }
  // From there on to the end of the segment, or of the file. Empty: the file does not have it.
  [[nodiscard]] std::span<const std::byte> BytesAt(uint64_t offset) const;
  [[nodiscard]] std::string_view KeyAt(uint64_t offset) const;

  void PlaceRegions();
  void Place(uint32_t region, uint32_t head, uint32_t slot, bool found);
  [[nodiscard]] bool FindPlace(uint32_t region);
  void ReadIndex();
  void ReadEntries(uint64_t offset, uint64_t slots, uint64_t first_slot);
  void ReadEntry(const format::IndexEntry& entry, uint64_t slot);
  [[nodiscard]] bool IsHome(uint64_t slot, uint32_t distance, uint64_t key_hash) const;
  void WalkRegion(uint32_t region);
  void WalkSegment(uint32_t region, uint64_t segment);
  void LookAtTombstone(uint32_t region);

  // What is at an offset of the pool, with no more than so many bytes.
  [[nodiscard]] format::ObjectView Look(uint64_t offset, uint64_t bytes) const;
  struct Found {
    format::ObjectView view;
    uint64_t offset = 0;
  };
  // What an entry leads to.
  [[nodiscard]] Found Follow(uint32_t head, format::LogAddress address) const;

  Best* Find(uint64_t key_hash, std::string_view key);
  void Name(const Found& found, uint64_t flags);
  void Add(const format::ObjectView& view, uint64_t offset, bool proven);
  [[nodiscard]] LostEntry* LostOf(uint64_t key_hash);

  void Choose();
  void ChooseOne(uint64_t key_hash, const Best& best);
  void Tell(std::string what, std::optional<std::string_view> key, std::optional<uint64_t> offset);
  Status TakeAll(const TakeValue& take);

  const std::span<const std::byte> pool_;
  const format::Geometry& g_;
  const uint32_t seed_;
  const std::optional<HashSeed> hash_seed_;
  const uint32_t shard_;
  const SalvageOptions& options_;
  SalvageReport& report_;

  std::vector<Region> regions_;                        // by number in the shard
  std::vector<uint32_t> region_in_;                    // by head of the shard and slot: the region plus 1, or 0
  uint32_t generation_max_ = 0;                        // of all that is known
  std::unordered_map<uint64_t, Best> best_;            // by the key's hash, or that and a little (Find)
  std::unordered_map<uint64_t, Best> older_;           // of keys whose best is damaged
  std::unordered_map<uint64_t, Best> unfinished_;      // by the key's hash: the newest version that is not whole
  std::unordered_map<uint64_t, uint64_t> unproven_;    // of keys that are named: the newest version that is not proven
  std::unordered_set<uint64_t> in_flight_;             // hashes of keys whose first put the index says was in flight
  std::unordered_map<uint64_t, uint64_t> tombstones_;  // by the key's hash: the newest tombstone that nothing names
  std::unordered_multimap<uint32_t, LostEntry> lost_;  // by tag: entries that lead to what does not verify
  struct Taken {
    uint64_t offset = 0;
    bool named = false;
  };
  std::vector<Taken> taken_;
};

}  // namespace erda::inspect
