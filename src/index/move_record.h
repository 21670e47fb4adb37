// The word of the shard's record that names the last entry that was moved, and its two slots. A power cut in the middle
// of a move leaves the entry in both. So recovery knows where to look.
//
// Owns that word. The shard's thread calls it, and the thread that starts the server before.
#pragma once

#include <cstddef>
#include <cstdint>

#include "erda/status.h"
#include "format/superblock.h"
#include "index/view.h"
#include "nvm/writer.h"

namespace erda::index {

class MoveRecord {
 public:
  MoveRecord(nvm::Writer& nvm, const View& view, uint32_t shard) : nvm_(nvm), view_(view), shard_(shard) {}

  // The entry in slot `from` is about to move to slot `to`. Persistent on return.
  void Begin(Slot from, Slot to) { Store(format::CheckedWord::Of(format::MoveWord::Of(from, to).raw())); }
  // Returns the last move that was begun, if there was one. Returns kCorruption if the record is damaged.
  [[nodiscard]] Result<format::MoveWord> Last() const;
  // No move was begun. Persistent on return.
  void Forget() { Store(format::CheckedWord()); }

 private:
  [[nodiscard]] uint64_t Offset() const {
    return format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, move);
  }
  void Store(format::CheckedWord word) {
    nvm_.Store64(Offset(), word.raw());
    nvm_.Persist(Offset(), sizeof(uint64_t));
  }

  nvm::Writer& nvm_;
  const View view_;
  const uint32_t shard_;
};

}  // namespace erda::index
