// The versions that a shard has published and flushed, and that the medium does not hold yet (docs/journal.md, "The
// shard"). Only a pool with a journal has such versions.
//
// Owns their order: the one in which the stream has them. Requires: a reservation in the queue is in flight until Take
// visits it. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "base/fifo.h"
#include "base/planted.h"
#include "nvm/writer.h"
#include "server/versions/in_flight.h"

namespace erda::server {

class HoldQueue {
 public:
  explicit HoldQueue(const nvm::Writer& nvm) : nvm_(nvm), holds_later_(nvm.holds_later()) {}

  // False: the medium holds all that is fenced, and the queue stays empty.
  [[nodiscard]] bool holds_later() const { return holds_later_; }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // Adds a reservation. Requires: the version is flushed, and so is its entry.
  void Push(InFlight::Id id) { waiting_.push_back({nvm_.place(), id}); }
  // Calls visit(InFlight::Id) for each reservation that the medium holds now, and takes it out. The newest comes first:
  // older versions of its key are overtaken then, and take little time. Returns how many.
  template <class Visit>
  size_t Take(Visit&& visit) {
    // (J2) Pairs with the store of the thread that writes to the medium. It stores the place when the medium has said
    // that all before it is there.
    const uint64_t held = Planted(Flaw::kSettledBeforeHeld) ? UINT64_MAX : nvm_.held();
    size_t taken = 0;
    while (taken < waiting_.size() && waiting_[taken].place <= held) ++taken;
    for (size_t i = taken; i > 0; --i) {
      const InFlight::Id id = waiting_[i - 1].id;  // visit may push
      visit(id);
    }
    waiting_.pop_front(taken);
    return taken;
  }

 private:
  struct Waiting {
    uint64_t place = 0;
    InFlight::Id id = InFlight::kNone;
  };

  const nvm::Writer& nvm_;
  const bool holds_later_;
  Fifo<Waiting> waiting_;
};

}  // namespace erda::server
