// The shape of a shard's index: how many blocks it has, which regions hold them, and the reaches of the key classes
// (format/reach.h).
//
// Owns the layout that the shard works with, and two words of the shard's record in the pool: blocks and reaches. The
// region table has the regions of the blocks. Readers know the shape by the control block (published.h).
//
// Requires: TakeUp before any other use, if the index may have grown. The shard's thread calls it, and the thread that
// starts the server before.
//   (I15) A window grows in the shard's record first, persistently, then in the control block. After that, entries may
//         stand beyond the earlier window. A window never shrinks. A reader looks at the whole window that the control
//         block tells after the look. If the reader has found nothing there, the key was absent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "erda/status.h"
#include "format/geometry.h"
#include "format/index_layout.h"
#include "format/superblock.h"
#include "index/published.h"
#include "nvm/writer.h"

namespace erda::index {

class StoredShape {
 public:
  StoredShape(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published);
  StoredShape(const StoredShape&) = delete;
  StoredShape& operator=(const StoredShape&) = delete;

  // Takes the shape from the shard's record, with these regions as runs, and publishes it. Returns kCorruption if the
  // record and the regions contradict each other.
  Status TakeUp(std::span<const uint32_t> regions);
  // If the record of the reaches is damaged, replaces it persistently by the farthest reaches. These are right for any
  // index.
  void MendReaches();

  [[nodiscard]] const format::IndexLayout& layout() const { return layout_; }

  // Returns the number of runs.
  [[nodiscard]] uint32_t runs() const { return runs_used_; }
  [[nodiscard]] bool MayHaveRun() const { return runs_used_ < geometry_.runs_max(); }
  // The region holds the next blocks from now on. Requires: MayHaveRun. The region table says so persistently.
  void AddRun(uint32_t region);

  // The index has this many blocks from now on, persistently after the next fence.
  void StoreBlocks(uint64_t blocks);
  // Windows are as large as these reaches say from now on, persistently on return. Requires: no window shrinks.
  void StoreReaches(format::Reaches reaches);

 private:
  [[nodiscard]] uint64_t BlocksOffset() const {
    return format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, blocks);
  }
  [[nodiscard]] uint64_t ReachesOffset() const {
    return format::ShardRecordOffset(shard_) + offsetof(format::ShardRecord, reaches);
  }
  void PublishBlocks();
  void PublishReaches(format::Reaches reaches);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  const Published published_;
  std::vector<uint32_t> runs_;  // As in the control block.
  uint32_t runs_used_ = 0;
  format::IndexLayout layout_;
};

}  // namespace erda::index
