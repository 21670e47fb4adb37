// Settles versions: finds that they are whole, makes them persistent, and says so in their entries.
//
// Owns: the versions that were flushed and are settled after the next fence, and the places in flight that the next
// batch of puts looks at. Requires: no put waits to be published whose key it settles (AllPublished); the caller's
// batch calls FlushDue and SettleFlushed. The shard's thread calls it.
//
// Invariants, checked by tests/model and tests/server:
//   (I2) A version is settled only after it was verified whole and its bytes, header and entry are persistent; the
//        settled bit is stored after all that.
//   (I4) A version that a delete superseded never comes back, in whatever order its value, its commit or its client's
//        death arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/all_published.h"
#include "server/chain.h"
#include "server/counters.h"
#include "server/outcome.h"
#include "server/reservations.h"

namespace erda::server {

// The commit of a reservation, as its session sent it, and what BeginCommit found.
struct Commit {
  uint64_t key_hash = 0;
  uint32_t head = 0;
  format::LogAddress address;
  uint64_t version = 0;
  SessionId session = 0;
  bool whole = false;   // the value is there; its write-back has begun
  uint64_t fences = 0;  // that the shard had made when it began: the next one waits for it
};

class Settling {
 public:
  using Slot = index::Slot;

  Settling(nvm::Writer& nvm, index::Index& index, log::ShardLog& log, Chain& chain, Counters& counters,
           Reservations& reservations)
      : nvm_(nvm), index_(index), log_(log), chain_(chain), counters_(counters), reservations_(reservations) {}

  // Settles the new version of the key's entry if it is whole.
  void SettleCurrent(Slot slot, uint64_t key_hash) {
    if (!index_.WordAt(slot).settled() || Planted(Flaw::kSettledNotWhole)) SettleUnsettled(slot, key_hash);
  }

  // Verifies the value of what a session reserved, and begins to make it persistent.
  void BeginCommit(Commit* commit);
  // Waits for that, unless the shard has fenced since: commits and puts in between share their fences. nullopt: this
  // session has no such reservation. It broke the protocol. Requires: no put of the key waits to be published.
  std::optional<Outcome> EndCommit(const Commit& commit);

  // Settles what arrived in the meantime, looking at up to `limit` reservations. Returns how many it settled.
  size_t Sweep(AllPublished, size_t limit);
  // Settles what arrived of the session's reservations without a commit, up to `limit`. Returns how many of its
  // reservations ended.
  size_t SweepOf(AllPublished, SessionId session, size_t limit);
  // Settles what arrived of the key's reservations.
  void SweepKey(AllPublished, uint64_t key_hash);

  // The next batch of puts looks at this many more places in flight, and shares its fences with them.
  void AddDue(size_t places) { due_ += places; }
  [[nodiscard]] bool is_due() const { return due_ > 0; }
  // Before the first fence of a batch: looks at what is due, and begins to make persistent what arrived.
  struct Flushed {
    uint64_t fences = 0;  // as in Commit
  };
  [[nodiscard]] Flushed FlushDue();
  // After the last fence of the batch: settles those. It fences itself if the batch did not.
  void SettleFlushed(Flushed flushed) { (void)SettleArrived(flushed.fences); }

  // The version is whole and persistent, and becomes the new or the old one of its entry if it is newer than what
  // stands there. Returns false if the key has no entry, or what the entry names is damaged.
  [[nodiscard]] bool Enter(const Reservation& reservation);

 private:
  void SettleUnsettled(Slot slot, uint64_t key_hash);
  // Returns the reservation that the commit is for; kNone: the session has none that waits for it.
  [[nodiscard]] InFlight::Id FindCommitted(const Commit& commit) const;
  void FlushIfArrived(InFlight::Id id, const Reservation& reservation);
  // Settles arrived_, fencing unless the shard has since it had made this many fences. Returns how many it settled.
  size_t SettleArrived(uint64_t fences);
  // What was flushed when the shard had made this many fences is persistent on return.
  void FenceSince(uint64_t fences);

  nvm::Writer& nvm_;
  index::Index& index_;
  log::ShardLog& log_;
  Chain& chain_;
  Counters& counters_;
  Reservations& reservations_;
  std::vector<InFlight::Id> arrived_;  // whole and flushed; empty between calls, except from FlushDue to SettleFlushed
  size_t due_ = 0;
  InFlight::Id cursor_ = 0;  // where the last sweep stopped
};

}  // namespace erda::server
