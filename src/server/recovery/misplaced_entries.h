// Entries in slots where no get looks for them. One page of a move or of a split arrived on the disk before the power
// cut, and another did not. Owns the list of them, and brings each to a place where gets look. The thread that starts
// the shard calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "erda/server.h"
#include "format/geometry.h"
#include "index/index.h"
#include "nvm/writer.h"
#include "server/recovery/entry_judge.h"
#include "server/recovery/found_index.h"

namespace erda::server {

class MisplacedEntries {
 public:
  MisplacedEntries(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, FoundIndex& index,
                   const EntryJudge& judge)
      : nvm_(nvm), geometry_(geometry), shard_(shard), index_(index), judge_(judge) {}

  // REQUIRES: the caller adds slots in their order, and the entry names a version whose key is known.
  void Add(index::Slot slot, const format::IndexEntry& entry) { entries_.push_back({slot, entry}); }
  // Returns true if the entry that was added last stands in this slot.
  [[nodiscard]] bool IsLast(index::Slot slot) const { return !entries_.empty() && entries_.back().slot == slot; }
  // Moves every entry to a place where gets look. An entry stands in its new place, persistently, before it leaves the
  // old one. Calls tell(key) if there is no place for a key.
  void MoveHome(const std::function<void(std::string_view key)>& tell, RecoveryReport* report);

 private:
  struct Misplaced {
    index::Slot slot = 0;
    format::IndexEntry entry;
  };

  // If the key also has an entry where gets look for it, lets that entry name the newer of the two versions, and
  // returns true.
  bool KeepNewer(const JudgedEntry& judged);
  // Returns a free slot whose meta is that of the object's key, persistently. May move other entries.
  std::optional<index::Slot> MakeRoom(const format::ObjectHeader& header);
  // Returns the slot in which the entry stands now.
  [[nodiscard]] std::optional<index::Slot> FindAgain(const Misplaced& misplaced) const;

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  FoundIndex& index_;
  const EntryJudge& judge_;
  std::vector<Misplaced> entries_;
};

}  // namespace erda::server
