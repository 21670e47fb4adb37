// Repairs the index of a shard that nothing vouches for: each entry by the objects that it leads to. Owns nothing
// beyond the call: it stores its findings in the parts. The thread that starts the shard calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "erda/server.h"
#include "format/geometry.h"
#include "index/index.h"
#include "server/recovery/entry_judge.h"
#include "server/recovery/found_index.h"
#include "server/recovery/found_regions.h"
#include "server/recovery/found_versions.h"
#include "server/recovery/misplaced_entries.h"

namespace erda::server {

class IndexRepair {
 public:
  // Called with each key whose newest value is damaged; with an empty one if nobody can know the key.
  using TellDamaged = std::function<void(std::string_view key)>;

  // Marks in `regions` the places that entries name, and shows `versions` the versions that it meets.
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

  // Repairs the index. If the server dies at any step, the next server begins at the first step again. Persistent on
  // return.
  void Repair();

 private:
  struct Twin {
    index::Slot slot = 0;
    std::optional<uint64_t> key_hash;
  };
  // By tag: the entries in earlier slots of the same block. One of them may be a second entry of the key that is judged
  // now.
  using Twins = std::unordered_multimap<uint32_t, Twin>;

  void RaiseBlocks();
  void JudgeSlots();
  // Returns the hash of the entry's key, if that is known.
  std::optional<uint64_t> JudgeSlot(index::Slot slot);
  // Ends entries of the same key before this one, or this one. Returns true if one before it is of the same key, and
  // stays.
  [[nodiscard]] bool EndTwins(const Twins& before, const Twin& own, uint32_t tag);
  // If two entries in one block are of one key, ends one of them. Returns true if that is the one in `slot`.
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
