// Recovery of one shard: takes up index and log as a crash left them, and makes of them what a clean close would have
// left (docs/protocol.md, "Restart and recovery").
//
// Nothing is in flight after a restart: what was not whole when the server died will never be. So all that has to be
// done is in the index: each entry that is not settled gets its newest whole version, or goes. What nothing in the
// index leads to does not count: it may have been deleted.
//
// (I9) The new version of an entry that is not settled lies in a segment that is not marked settled, behind the
//      segment's mark, or in a tombstone slot. So the headers found there lead to all such entries, and the index need
//      not be looked through. It is only if something there is damaged or cut off, and so leads nowhere.
//
// Look reads and decides, Repair stores. Every store of Repair is one of 8 bytes, or changes nothing that an entry
// names; each leaves a pool that recovers to the same contents, so a crash in the middle is recovered by the same.
#pragma once

#include <vector>

#include "erda/server.h"
#include "format/geometry.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/chain.h"
#include "server/recovery_table.h"

namespace erda::server {

class Recovery {
 public:
  Recovery(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, index::Index& index, log::ShardLog& log,
           Chain& chain)
      : nvm_(nvm),
        geometry_(geometry),
        shard_(shard),
        index_(index),
        log_(log),
        log_recovery_(log.Recover()),
        chain_(chain) {}

  // version_limit: no version in the pool is as high. kCorruption if region table, segments and index contradict each
  // other as no crash makes them. Changes nothing.
  Status Look(uint64_t version_limit);
  // REQUIRES: Look was ok. All persistent on return; index and log are ready for use.
  RecoveryReport Repair();

 private:
  using Slot = index::Slot;
  using Window = format::IndexLayout::Window;

  struct Slots {
    Slot begin = 0;
    Slot end = 0;
  };
  struct Unsettled {
    Slot slot = 0;
    RecoveryAction action = RecoveryAction::kDamaged;
    Chain::Before version;  // kSettle: its newest one; kGoBack: the one to go back to
  };

  void LookAtWindows(std::vector<Window> windows, format::MoveWord move);
  void ScanIndex();
  [[nodiscard]] Unsettled Decide(Slot slot, const format::IndexEntry& entry);
  [[nodiscard]] bool Belongs(Slot slot, const format::IndexEntry& entry, const format::ObjectView& view) const;
  void RepairEntry(const Unsettled& unsettled);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  index::Index& index_;
  log::ShardLog& log_;
  log::LogRecovery log_recovery_;
  Chain& chain_;

  std::vector<Slots> touched_;        // that were looked at: all where a store may be in the caches alone
  std::vector<Slot> second_copies_;   // of entries that were being moved
  std::vector<Unsettled> unsettled_;  // as many as puts and deletes were in flight, about
  RecoveryReport report_;
};

}  // namespace erda::server
