// Finds the structure of a shard's index again after a power cut: its runs, the number of its blocks and the reach of
// its keys. The records of these may be older than the entries. Owns the layout, and stores entries and records. The
// thread that starts the shard calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "erda/status.h"
#include "format/geometry.h"
#include "format/index_layout.h"
#include "index/index.h"
#include "nvm/writer.h"
#include "server/recovery/region_bytes.h"

namespace erda::server {

class FoundIndex {
 public:
  FoundIndex(nvm::Writer& nvm, const RegionBytes& bytes, const format::Geometry& geometry, uint32_t shard);
  FoundIndex(const FoundIndex&) = delete;
  FoundIndex& operator=(const FoundIndex&) = delete;

  // Reads the structure, and changes nothing. Returns kCorruption if the index cannot be found again; the message says
  // what to do.
  Status Look();
  // REQUIRES for all below: Look was ok.
  [[nodiscard]] const format::IndexLayout& layout() const { return layout_; }
  // Returns the end of the index slots in all known runs, even if no block of the index has them yet.
  [[nodiscard]] index::Slot places_end() const { return layout_.FirstOf(known_blocks_); }
  // Returns true if the region is a run of the index.
  [[nodiscard]] bool IsRun(uint32_t region) const;
  [[nodiscard]] std::vector<uint32_t> RunRegions() const;
  [[nodiscard]] format::IndexEntry At(index::Slot slot) const;
  // Returns true if gets look for the entry in this slot. key_hash: of its key, if that is known.
  [[nodiscard]] bool IsInPlace(index::Slot slot, const format::IndexEntry& entry,
                               std::optional<uint64_t> key_hash) const;

  // Sets the number of blocks, persistently on return. Forgets runs after the last one in use.
  void SetBlocks(uint64_t blocks);
  // Raises the reach of the key's block, so that gets find the entry of the key in this slot.
  void RaiseReach(index::Slot slot, const format::IndexEntry& entry, uint64_t key_hash);
  void SetReaches(format::Reaches reaches) { layout_.SetReaches(reaches); }
  // Stores the reaches. Persistent on return.
  void StoreReaches();
  // Persistent on return.
  void StoreEntry(index::Slot slot, format::EntryWord word);

 private:
  Status LookAtRuns();
  Status LookAtBlocks();
  [[nodiscard]] format::Reaches RecordedReaches() const;

  nvm::Writer& nvm_;
  const RegionBytes& bytes_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  std::vector<uint32_t> runs_;  // As in the control block: regions plus 1.
  format::IndexLayout layout_;
  uint64_t known_blocks_ = 0;  // Blocks that the known runs have places for.
};

}  // namespace erda::server
