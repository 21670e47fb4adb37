// Which versions a shard has given out, found again after a power cut. The record of the limit may be older than the
// versions. Owns the newest version that was seen. The thread that starts the shard calls it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nvm/writer.h"

namespace erda::server {

class FoundVersions {
 public:
  FoundVersions(const nvm::Writer& nvm, uint32_t shard) : nvm_(nvm), shard_(shard) {}

  // A version from here on is no shard's: a client has forged the header in its own chunk, or it is damaged. To believe
  // it would use up the numbers that are left.
  [[nodiscard]] uint64_t end() const;
  // An object or a segment in the pool has this version. Ignores versions from end() on.
  void See(uint64_t version) {
    if (version < end()) newest_ = std::max(newest_, version);
  }
  // A limit that no version in the pool comes near to, for the shard's record.
  [[nodiscard]] uint64_t NextLimit() const;

 private:
  const nvm::Writer& nvm_;
  const uint32_t shard_;
  uint64_t newest_ = 0;
};

}  // namespace erda::server
