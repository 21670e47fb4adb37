// Growth of an index, by one block at a time: splits the oldest block that is not split yet (format/index_layout.h).
//
// Owns nothing. Requires: for Split, all slots are counted, and no put waits to be published. The shard's thread calls
// it. The thread that starts the server calls IsLeftOver and EndLastSplit before.
//   (I14) A split stores the new block first, whole and persistent. Then it stores the number of blocks, by which the
//         new block counts. When that is persistent, it frees the entries in the old block. So an entry that a client
//         finds in the old block is still the key's. If the client finds none, the number of blocks that it reads later
//         tells it where to look.
// A power cut in the middle leaves entries in the old block that belong to the new one: IsLeftOver.
#pragma once

#include <cstdint>

#include "format/geometry.h"
#include "format/index_entry.h"
#include "index/census.h"
#include "index/mender.h"
#include "index/slots.h"
#include "index/stored_shape.h"
#include "index/view.h"
#include "nvm/writer.h"

namespace erda::index {

class Splitting {
 public:
  Splitting(nvm::Writer& nvm, const format::Geometry& geometry, const View& view, StoredShape& shape, Slots& slots,
            Census& census, Mender& mender)
      : nvm_(nvm), geometry_(geometry), view_(view), shape_(shape), slots_(slots), census_(census), mender_(mender) {}

  // Returns true if the next split is due, by the number of keys.
  [[nodiscard]] bool WantsSplit() const;
  // Returns true if the next run is due: early, so that most clients know it when they need it.
  [[nodiscard]] bool WantsRun() const;
  // Returns true if the next block has a place. Otherwise a run is needed first, if the index may have one more.
  [[nodiscard]] bool CanSplit() const {
    const uint64_t blocks = view_.layout().blocks();
    return blocks < geometry_.blocks_max() && view_.layout().IsKnown(blocks);
  }
  // Splits the next block, persistently on return. Requires: CanSplit().
  void Split();

  // Returns true if the entry belongs to the last block, which came of this slot's block. A crash came before the shard
  // had freed the entry here.
  [[nodiscard]] bool IsLeftOver(Slot slot, const format::IndexEntry& entry) const {
    const format::IndexLayout& layout = view_.layout();
    return layout.grown() && layout.BlockWith(slot) == layout.LastParent() &&
           layout.BlockOf(entry.entry_meta().tag()) == layout.blocks() - 1;
  }
  // Frees what the last split left over, persistently after the next fence. Requires: the number of blocks is
  // persistent, and no slot is counted yet.
  void EndLastSplit();

 private:
  // Stores each entry of the old block that has this bit into the new block, and empties all other slots there.
  void FillNewBlock(Slot from, Slot to, uint64_t bit);
  // Frees these entries in the old block, persistently on return.
  void FreeMoved(Slot from, uint64_t bit);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const View view_;
  StoredShape& shape_;
  Slots& slots_;
  Census& census_;
  Mender& mender_;
};

}  // namespace erda::index
