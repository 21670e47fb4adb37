// After a merge: looks through the index for entries that still name a region, and sets them aside. The walk did not
// meet what they name: it is damaged, or its client has forged its header. So nobody knows the keys. Owns where the
// search is. The shard's thread calls it.
#pragma once

#include <cstdint>

#include "log/shard_log.h"
#include "server/versions.h"

namespace erda::server {

class AsideSearch {
 public:
  explicit AsideSearch(Versions& versions) : versions_(versions) {}

  // REQUIRES: the region is merged, and no client holds it.
  void Begin(const log::ShardLog::LinkedRegion& region);
  // Looks at some entries. Returns true at the end of the index.
  bool Step();
  [[nodiscard]] uint32_t region() const { return region_; }
  // It has settled a version. The next merge of the region can move that.
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
