// Finds a free slot for a key. If the key's neighbourhood has none, moves other entries by hopscotch hashing, or finds
// a slot farther away in the key's window.
//
// Owns the displacement counter of the control block. Requires: no put waits to be published when entries move, or when
// a window grows. The slot is free until the caller enters an entry there: a second search may find the same. The
// shard's thread calls it.
//   (I6) An entry that moves stands in its new slot before it leaves the old one. The displacement counter is odd in
//        between. Suppose that a reader reads all slots between two equal, even readings of the counter, and finds
//        nothing. Then no entry moved meanwhile, and the key was absent.
#pragma once

#include <cstdint>
#include <optional>

#include "erda/status.h"
#include "format/geometry.h"
#include "index/census.h"
#include "index/entry_news.h"
#include "index/move_record.h"
#include "index/slots.h"
#include "index/stored_shape.h"
#include "index/view.h"

namespace erda::index {

class FreeSlots {
 public:
  // displacements: in the control block.
  FreeSlots(const format::Geometry& geometry, const View& view, StoredShape& shape, Slots& slots, Census& census,
            EntryNews& news, MoveRecord& moves, uint64_t* displacements)
      : geometry_(geometry),
        view_(view),
        shape_(shape),
        slots_(slots),
        census_(census),
        news_(news),
        moves_(moves),
        displacements_(displacements) {}

  // Returns a free slot in the key's neighbourhood, if there is one.
  [[nodiscard]] std::optional<Slot> FindRoom(uint64_t key_hash) const {
    return view_.FirstFree(view_.layout().HomeOf(key_hash), format::kNeighbourhood);
  }
  // Returns a free slot in the key's neighbourhood, and moves other entries if that is necessary. Returns
  // kResourceExhausted if no moves free such a slot.
  Result<Slot> MakeRoom(uint64_t key_hash);
  // Returns a free slot elsewhere in the key's window. If the window has none it grows, persistently on return. Returns
  // nothing if the whole block is taken.
  std::optional<Slot> MakeFarRoom(uint64_t key_hash);
  // Returns how many low bits of their hashes the key and all entries in its neighbourhood share. Splits by these bits
  // do not part them.
  [[nodiscard]] uint32_t BitsShared(uint64_t key_hash) const;

 private:
  // Moves an entry into the free slot, from a slot nearer to its home. Returns the slot that has become free, or
  // nothing if no entry may move there.
  [[nodiscard]] std::optional<Slot> Displace(Slot free);
  void Move(Slot from, Slot to);
  void StoreDisplacements(uint64_t value);

  const format::Geometry& geometry_;
  const View view_;
  StoredShape& shape_;
  Slots& slots_;
  Census& census_;
  EntryNews& news_;
  MoveRecord& moves_;
  uint64_t* const displacements_;
};

}  // namespace erda::index
