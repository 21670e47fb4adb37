// Looks at entries of the index for versions that have expired, by their headers alone. Proposes to the shard to free
// those. Owns nothing: its callers know where they are in the index. The cleaner's thread calls it.
#pragma once

#include <cstdint>

#include "base/server_time.h"
#include "index/index.h"
#include "server/clean_queues.h"
#include "server/named_objects.h"

namespace erda::server {

class ExpiryLook {
 public:
  struct Seen {
    uint64_t slots = 0;                   // of the index, passed
    uint64_t expiring = 0;                // entries that name a version with a deadline
    uint64_t expired = 0;                 // of these, entries whose deadline has passed
    bool unsettled = false;               // an entry may still go back to a version with a deadline
    uint64_t next_deadline = UINT64_MAX;  // the earliest that has not passed
  };

  // The index is the cleaner's own view of the shard's.
  ExpiryLook(index::Index& index, const NamedObjects& objects, ProposalQueue& proposals, const ServerTime& time)
      : index_(index), objects_(objects), proposals_(proposals), time_(time) {}

  // Looks at up to `looks` entries from slot *next on, and moves *next past them. Stops at the end of the index, or
  // when the queue of proposals has no room.
  Seen Look(index::Slot* next, uint64_t looks);
  // The slot is the end of the index, as large as that is by now.
  [[nodiscard]] bool IsEnd(index::Slot slot) {
    (void)index_.Refresh();
    return slot >= index_.size();
  }

 private:
  void LookAt(const format::IndexEntry& entry, Seen* seen);

  index::Index& index_;
  const NamedObjects& objects_;
  ProposalQueue& proposals_;
  const ServerTime& time_;
};

}  // namespace erda::server
