// Verifies the values that index entries name, one after the other, and begins again at the end of the index. Owns its
// place in the index. Proposes each damaged value to the shard, and repairs nothing. The cleaner's thread calls it.
#pragma once

#include <cstdint>

#include "index/read_only_index.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaner/named_objects.h"
#include "server/control/counters.h"

namespace erda::server {

class Scrubber {
 public:
  // The index is the cleaner's own view of the shard's. counters: of the shard's control block.
  Scrubber(index::ReadOnlyIndex& index, const NamedObjects& objects, ProposalQueue& proposals, Counters counters)
      : index_(index), objects_(objects), proposals_(proposals), counters_(counters) {}

  // Verifies about this many bytes. Each tenth call proposes that the shard mends some entries.
  void Scrub(uint64_t bytes);

 private:
  // Returns true if the entry names a damaged version as settled. Sets *bytes to the number of verified bytes.
  [[nodiscard]] bool IsDamaged(const format::IndexEntry& entry, uint64_t* bytes) const;

  index::ReadOnlyIndex& index_;
  const NamedObjects& objects_;
  ProposalQueue& proposals_;
  Counters counters_;
  index::Slot next_ = 0;
  uint64_t scrubs_ = 0;  // the number of calls of Scrub
};

}  // namespace erda::server
