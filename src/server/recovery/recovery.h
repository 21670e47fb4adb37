// Recovery of one shard. Takes up index and log as a crash left them, and brings them to a state that a clean close
// could leave. See docs/protocol.md, "Restart and recovery".
//
// Nothing is in flight after a restart: a version that was not whole when the server died will never be. So recovery
// has to repair only the index: each entry that is not settled gets its newest whole version, or goes. An object to
// which no entry leads does not count: its key may have been deleted.
//
// (I9) If an entry is not settled, its new version lies in a tombstone slot or in a segment that is not marked settled.
// In the segment it lies after the mark. So the headers found there lead to all such entries, and recovery need not
// look through the index. It looks through the index only if an object there is damaged or cut off, and so leads to no
// entry.
//
// Look reads and decides, and Repair stores. Each store of Repair is one of 8 bytes, or changes no bytes that an entry
// names. After each store the pool recovers to the same contents. So after a crash in the middle, the next recovery
// comes to the same result. The thread that starts the server calls it, before any client is served.
#pragma once

#include <vector>

#include "erda/server.h"
#include "format/geometry.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/pool/chain.h"
#include "server/recovery/recovery_table.h"

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

  // Reads the pool, and changes nothing. Every version in the pool is below version_limit. Returns kCorruption if
  // region table, segments and index contradict each other in a way that no crash explains.
  Status Look(uint64_t version_limit);
  // Repairs the shard. REQUIRES: Look was ok. Everything is persistent on return, and index and log are ready for use.
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

  std::vector<Slots> touched_;        // The index slots that Look has read: a store may be in the caches only in these.
  std::vector<Slot> second_copies_;   // Of entries that were being moved.
  std::vector<Unsettled> unsettled_;  // About as many as puts and deletes were in flight.
  RecoveryReport report_;
};

}  // namespace erda::server
