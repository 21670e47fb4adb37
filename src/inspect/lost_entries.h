// The entries of a shard's index that lead to nothing that verifies. Such an entry still tells that its key had a newer
// version than those that are found. One thread uses it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "format/geometry.h"

namespace erda::inspect {

// Returns whether an entry of the key may be in that index slot and state that distance, whatever the number of blocks.
// (A split may have left an entry in its old block. It names the same version there, or the one before.)
[[nodiscard]] bool MayStandIn(const format::Geometry& geometry, uint64_t index_slot, uint32_t distance,
                              uint64_t key_hash);

class LostEntries {
 public:
  struct Entry {
    uint64_t index_slot = 0;
    uint32_t distance = 0;
    bool recognised = false;  // it is of a key that the salvage has found
  };

  explicit LostEntries(const format::Geometry& geometry) : geometry_(geometry) {}

  void Add(uint32_t tag, uint64_t index_slot, uint32_t distance) { entries_.emplace(tag, Entry{index_slot, distance}); }
  // Returns whether an entry is of the key with this hash, and marks that one as recognised.
  [[nodiscard]] bool Recognise(uint64_t key_hash);

  using ByTag = std::unordered_multimap<uint32_t, Entry>;
  [[nodiscard]] const ByTag& all() const { return entries_; }

 private:
  const format::Geometry& geometry_;
  ByTag entries_;
};

}  // namespace erda::inspect
