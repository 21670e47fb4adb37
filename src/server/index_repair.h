// Repairs the index of a shard that nothing vouches for: each entry by the objects that it leads to. Owns nothing
// beyond the call: what it finds goes to the parts. The thread that starts the shard calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "erda/server.h"
#include "format/geometry.h"
#include "index/index.h"
#include "server/entry_judge.h"
#include "server/found_index.h"
#include "server/found_regions.h"
#include "server/found_versions.h"
#include "server/misplaced_entries.h"

namespace erda::server {

class IndexRepair {
 public:
  // Called with each key whose newest value is damaged; with an empty one if nobody can know the key.
  using TellDamaged = std::function<void(std::string_view key)>;

  // Marks in `regions` what entries name, and shows `versions` the versions that it meets.
  IndexRepair(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, FoundIndex& index,
              FoundRegions& regions, FoundVersions& versions, const TellDamaged& tell, RecoveryReport* report)
      : geometry_(geometry),
        index_(index),
        regions_(regions),
        versions_(versions),
        judge_(regions, geometry, shard),
        misplaced_(nvm, geometry, shard, index, judge_),
        tell_(tell),
        report_(*report) {}

  // Each step may be the last one: the next server begins at the first one again. Persistent on return.
  void Repair();

 private:
  struct Twin {
    index::Slot slot = 0;
    std::optional<uint64_t> key_hash;
  };
  // By tag: entries in the slots before, of the same block. Another entry of a key can be there.
  using Twins = std::unordered_multimap<uint32_t, Twin>;

  void RaiseBlocks();
  void JudgeSlots();
  // Returns the hash of the entry's key, if that is known.
  std::optional<uint64_t> JudgeSlot(index::Slot slot);
  // Returns true if an entry before this one is of the same key, and stays.
  [[nodiscard]] bool EndTwins(const Twins& before, const Twin& own, uint32_t tag);
  // Ends one of two entries in one block, if they are of one key. Returns true if `slot` goes.
  bool EndTwin(index::Slot other, index::Slot slot);

  const format::Geometry& geometry_;
  FoundIndex& index_;
  FoundRegions& regions_;
  FoundVersions& versions_;
  EntryJudge judge_;
  MisplacedEntries misplaced_;
  const TellDamaged& tell_;
  RecoveryReport& report_;
};

}  // namespace erda::server
