// Growth of a shard's index, step by step (docs/protocol.md, "Growth"). Decides when a block is split, and when a
// region becomes a run of blocks. Finds a place for a key that has none near its home.
//
// Owns the pace. Requires: no put waits to be published when entries move (AllPublished; Grow publishes itself). The
// shard's thread calls it.
#pragma once

#include <cstdint>

#include "format/geometry.h"
#include "format/messages.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "server/control/counters.h"
#include "server/pool/version_numbers.h"
#include "server/versions/all_published.h"
#include "server/versions/mending.h"
#include "server/versions/publish_batch.h"

namespace erda::server {

class Growth {
 public:
  // grows: false if the index stays as it is, and gets full.
  Growth(const format::Geometry& geometry, index::Index& index, log::ShardLog& log, Counters& counters,
         const VersionNumbers& numbers, PublishBatch& batch, Mending& mending, bool grows)
      : geometry_(geometry),
        index_(index),
        log_(log),
        counters_(counters),
        numbers_(numbers),
        batch_(batch),
        mending_(mending),
        grows_(grows) {}

  // Does some of the growth that is due: splits blocks of about this many slots, or gives the index a region of the
  // log. Also calls CountKeys, for a shard that is never idle.
  void Grow(uint64_t slots = format::kBlockSlotsMax) {
    if (index_.census().used() != nothing_due_at_) GrowIfDue(slots);
  }
  // Counts the keys in some more slots. Returns true once all are counted.
  bool CountKeys(uint64_t slots);
  // Counts all keys, and lets Mending compare the index with the sum of the last server. Does nothing a second time.
  // Required before entries move. Otherwise a move copies a flipped bit into another slot, where the sum cannot find
  // it.
  void EndRest(AllPublished);
  // Finds a free index slot for a new entry of the key. May move entries, and may let the index grow. If it returns
  // kNone, *slot is the free slot.
  format::Reason MakeRoom(AllPublished, uint64_t key_hash, index::Slot* slot);

 private:
  void GrowIfDue(uint64_t slots);
  // Splits the next block. Returns false if there is no region for the new block.
  bool SplitNext(AllPublished);
  // Makes a free region a run of the index. Returns false if there is no region for it.
  bool AddRun();

  const format::Geometry& geometry_;
  index::Index& index_;
  log::ShardLog& log_;
  Counters& counters_;
  const VersionNumbers& numbers_;
  PublishBatch& batch_;
  Mending& mending_;
  const bool grows_;
  uint64_t given_ = 0;  // numbers_.given() at the last Grow
  // The number of used slots at which nothing was due, in an index of the present size.
  uint64_t nothing_due_at_ = UINT64_MAX;
};

}  // namespace erda::server
