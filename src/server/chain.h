// The versions of an entry, from its new one to older ones along `previous`, and the stores that settle one of them or
// go back to one: what settling.cc, taking_back.cc and recovery.cc share.
#pragma once

#include "base/planted.h"
#include "format/object.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"

namespace erda::server {

class Chain {
 public:
  using Address = format::LogAddress;
  using Slot = index::Slot;

  Chain(nvm::Writer& nvm, index::Index& index, const log::ShardLog& log) : nvm_(nvm), index_(index), log_(log) {}

  // A version to go back to; no address: the entry's old one.
  struct Before {
    Address address;
    uint64_t whole_bytes = 0;  // that it takes, if it is whole
  };
  // The newest version before `gone`, of which the header is enough, and newer than the one at `old`, that is whole or
  // that may_arrive(address). Asks may_arrive of each that is not whole.
  template <class MayArrive>
  [[nodiscard]] Before NewestBefore(uint32_t head, const format::ObjectView& gone, Address old,
                                    MayArrive&& may_arrive) const {
    if (Planted(Flaw::kTakesBackToOld)) return {};
    const uint64_t oldest = VersionAt(head, old);
    format::ObjectView view = gone;
    for (Address at = Previous(head, view); !at.none() && at != old; at = Previous(head, view)) {
      view = log_.Inspect(head, at);
      if (view.header.version <= oldest) break;
      if (view.state == format::ObjectState::kWhole) return {at, SpaceOf(view.header)};
      if (may_arrive(at)) return {at, 0};
    }
    return {};
  }

  // The number of the version whose header is there; 0 if none is.
  [[nodiscard]] uint64_t VersionAt(uint32_t head, Address address) const;

  // If the version there is whole, begins to make it persistent: it is after the next fence.
  bool FlushIfWhole(uint32_t head, Address address);
  // And waits for it.
  bool MakePersistentIfWhole(uint32_t head, Address address);
  // REQUIRES: it was found whole.
  void MakePersistent(uint32_t head, const Before& version) {
    nvm_.Persist(log_.OffsetOf(head, version.address), version.whole_bytes);
  }
  // The slot's entry is `word`, and its new version settled. REQUIRES: that version is persistent, and so is the entry
  // as it stands.
  void StoreSettled(Slot slot, format::EntryWord word);
  // The new version of the slot's entry will never be whole. Persistent on return, but for the settled bit.
  void TakeBack(Slot slot, const Before& before);

 private:
  // The version before `view` in the chain, or none: an address counts only if it holds an older version of the key.
  [[nodiscard]] Address Previous(uint32_t head, const format::ObjectView& view) const;

  nvm::Writer& nvm_;
  index::Index& index_;
  const log::ShardLog& log_;
};

}  // namespace erda::server
