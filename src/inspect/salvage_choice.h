// Chooses by the evidence which version of each key the salvage takes, and takes the values. Counts and lists the keys
// that lose a value. Used once for a shard, by one thread, after index and log are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "erda/status.h"
#include "inspect/key_evidence.h"
#include "inspect/lost_entries.h"
#include "inspect/placed_regions.h"
#include "inspect/salvage.h"
#include "inspect/salvage_bytes.h"
#include "inspect/salvage_losses.h"

namespace erda::inspect {

class SalvageChoice {
 public:
  // older: of a key whose newest version is damaged, the version before it is taken.
  SalvageChoice(const SalvageBytes& bytes, const KeyEvidence& keys, bool older, LostEntries* lost,
                SalvageLosses* losses)
      : bytes_(bytes), keys_(keys), older_(older), lost_(*lost), losses_(*losses) {}

  // Chooses for all keys of the evidence.
  void Run();
  // Takes the chosen values in the order of their places. Returns the first error of `take`, which ends it.
  [[nodiscard]] Status TakeAll(const PlacedRegions& regions, const TakeValue& take);

 private:
  struct Chosen {
    uint64_t offset = 0;  // in the pool
    bool named = false;
  };

  void Choose(const KnownVersion& best);
  // The newest version of the key is damaged, or lost: an entry that is `recognised` leads to nothing.
  void ChooseOlder(const KnownVersion& best, bool recognised);
  void AddUnfinishedKeys();
  void AddLostEntries();

  const SalvageBytes& bytes_;
  const KeyEvidence& keys_;
  const bool older_;
  LostEntries& lost_;
  SalvageLosses& losses_;
  std::vector<Chosen> chosen_;  // 16 bytes for each value
};

}  // namespace erda::inspect
