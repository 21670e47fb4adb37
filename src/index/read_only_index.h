// The index of a shard as another thread reads it while the shard changes it. The cleaner has one.
//
// Owns the shape of the index as this thread knows it: the number of blocks, their regions, and the reaches. Refresh
// takes over what the shard has published since. Stores nothing. Requires: the caller allows for stale and moving
// entries, since an entry may change or move at any moment. One thread calls it, and not the shard's.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "format/geometry.h"
#include "format/index_layout.h"
#include "index/published.h"
#include "index/view.h"
#include "nvm/writer.h"

namespace erda::index {

class ReadOnlyIndex {
 public:
  // Knows the first blocks alone until Refresh.
  ReadOnlyIndex(const nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published);
  ReadOnlyIndex(const ReadOnlyIndex&) = delete;
  ReadOnlyIndex& operator=(const ReadOnlyIndex&) = delete;

  // Takes over growth that the shard has published. Returns true if there are more blocks, or if a window is larger.
  bool Refresh();
  // Returns the number of slots at the last Refresh.
  [[nodiscard]] uint64_t size() const { return view_.size(); }
  [[nodiscard]] format::IndexEntry At(Slot slot) const { return view_.At(slot); }
  // Returns the slot whose entry has the key's tag and satisfies is_key(slot, entry).
  template <class IsKey>
  [[nodiscard]] std::optional<Slot> Find(uint64_t key_hash, IsKey&& is_key) const {
    return view_.Find(key_hash, std::forward<IsKey>(is_key));
  }

 private:
  const Published published_;
  std::vector<uint32_t> runs_;  // The known ones, as in the control block.
  uint32_t runs_known_ = 0;
  format::IndexLayout layout_;
  const View view_;
};

}  // namespace erda::index
