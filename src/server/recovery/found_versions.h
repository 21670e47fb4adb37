// Finds out after a power cut which versions a shard has given out. The record of the limit may be older than the
// versions. Owns the newest version that was seen. The thread that starts the shard calls it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nvm/writer.h"

namespace erda::server {

class FoundVersions {
 public:
  FoundVersions(const nvm::Writer& nvm, uint32_t shard) : nvm_(nvm), shard_(shard) {}

  // Returns a number that no version of the shard has reached. If a header has a higher one, a client has forged it in
  // its chunk, or it is damaged. To accept it would use up the numbers that are left.
  [[nodiscard]] uint64_t end() const;
  // Notes that an object or a segment in the pool has this version. Ignores versions from end() on.
  void See(uint64_t version) {
    if (version < end()) newest_ = std::max(newest_, version);
  }
  // Returns a limit for the shard's record, far above every version in the pool.
  [[nodiscard]] uint64_t NextLimit() const;

 private:
  const nvm::Writer& nvm_;
  const uint32_t shard_;
  uint64_t newest_ = 0;
};

}  // namespace erda::server
