// Looks at entries of the index for versions that have expired, by their headers alone. Proposes to the shard to free
// these. Owns nothing: its callers keep their place in the index. The cleaner's thread calls it.
#pragma once

#include <cstdint>

#include "base/server_time.h"
#include "index/read_only_index.h"
#include "server/cleaner/clean_queues.h"
#include "server/cleaner/named_objects.h"

namespace erda::server {

class ExpiryLook {
 public:
  struct Seen {
    uint64_t slots = 0;                   // Index slots that it has passed.
    uint64_t expiring = 0;                // Entries that name a version with a deadline.
    uint64_t expired = 0;                 // Entries among these whose deadline has passed.
    bool unsettled = false;               // An entry may still go back to a version with a deadline.
    uint64_t next_deadline = UINT64_MAX;  // The earliest deadline that has not passed.
  };

  // The index is the cleaner's own view of the shard's.
  ExpiryLook(index::ReadOnlyIndex& index, const NamedObjects& objects, ProposalQueue& proposals, const ServerTime& time)
      : index_(index), objects_(objects), proposals_(proposals), time_(time) {}

  // Looks at up to `looks` entries from slot *next on, and moves *next past them. Stops at the end of the index, or
  // when the queue of proposals has no room.
  Seen Look(index::Slot* next, uint64_t looks);
  // Returns true if the slot is at the end of the index, at the present size of the index.
  [[nodiscard]] bool IsEnd(index::Slot slot) {
    (void)index_.Refresh();
    return slot >= index_.size();
  }

 private:
  void LookAt(const format::IndexEntry& entry, Seen* seen);

  index::ReadOnlyIndex& index_;
  const NamedObjects& objects_;
  ProposalQueue& proposals_;
  const ServerTime& time_;
};

}  // namespace erda::server
