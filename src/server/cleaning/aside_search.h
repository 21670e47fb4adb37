// After a merge: looks through the index for entries that still name the merged region, and sets them aside. The walk
// of the merge did not find the objects that they name: these are damaged, or a client has forged their headers. So
// nobody knows the keys. Owns the position of the search. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "log/shard_log.h"
#include "server/versions/versions.h"

namespace erda::server {

class AsideSearch {
 public:
  explicit AsideSearch(Versions& versions) : versions_(versions) {}

  // REQUIRES: the region is merged, and no client holds it.
  void Begin(const log::ShardLog::LinkedRegion& region);
  // Looks at some entries. Returns true at the end of the index.
  bool Step();
  [[nodiscard]] uint32_t region() const { return region_; }
  // Returns true if the search has settled a version. The next merge of the region can move that version.
  [[nodiscard]] bool has_settled() const { return has_settled_; }

 private:
  Versions& versions_;
  uint32_t region_ = 0;
  uint32_t head_ = 0;
  uint32_t head_slot_ = 0;
  index::Slot next_ = 0;
  bool has_settled_ = false;
};

}  // namespace erda::server
