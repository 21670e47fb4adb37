// The chain of versions of an index entry, from its new one to older ones along `previous`. Also stores into the entry
// to settle one of them, or to go back to one. settling.cc, taking_back.cc and recovery.cc share it. The
// shard's thread calls it, and the thread that starts the server before.
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

  // A version to go back to. Without an address it stands for the entry's old version.
  struct Before {
    Address address;
    uint64_t whole_bytes = 0;  // its size if it is whole
  };
  // Returns the newest version before `gone` that is newer than the one at `old`, and is whole or may still arrive.
  // Calls may_arrive(address) for each version that is not whole. Reads only the header of `gone`.
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

  // Returns the number of the version whose header is at the address, or 0 if no header is there.
  [[nodiscard]] uint64_t VersionAt(uint32_t head, Address address) const;

  // If the version there is whole, flushes it and returns true. It is persistent after the next fence.
  bool FlushIfWhole(uint32_t head, Address address);
  // Does the same as FlushIfWhole, and fences. The version is persistent on return.
  bool MakePersistentIfWhole(uint32_t head, Address address);
  // Makes the version persistent. REQUIRES: NewestBefore found it whole.
  void MakePersistent(uint32_t head, const Before& version) {
    nvm_.Persist(log_.OffsetOf(head, version.address), version.whole_bytes);
  }
  // Stores `word` into the slot's entry, with its new version settled. REQUIRES: that version is persistent, and so is
  // the entry as it stands.
  void StoreSettled(Slot slot, format::EntryWord word);
  // Takes back the new version of the slot's entry, which will never be whole. Persistent on return, except for the
  // settled bit.
  void TakeBack(Slot slot, const Before& before);

 private:
  // Returns the address of the version before `view` in the chain, or LogAddress() if there is no older one. An address
  // counts only if it holds an older version of the key.
  [[nodiscard]] Address Previous(uint32_t head, const format::ObjectView& view) const;

  nvm::Writer& nvm_;
  index::Index& index_;
  const log::ShardLog& log_;
};

}  // namespace erda::server
