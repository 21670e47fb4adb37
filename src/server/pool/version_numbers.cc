#include "server/pool/version_numbers.h"

#include <algorithm>

#include "base/planted.h"
#include "format/superblock.h"
#include "format/version_limit.h"

namespace erda::server {

VersionNumbers::VersionNumbers(nvm::Writer& nvm, uint32_t shard)
    : nvm_(nvm), limit_at_(format::ShardRecordOffset(shard) + offsetof(format::ShardRecord, version_limit)) {}

void VersionNumbers::Begin(uint64_t limit) {
  limit_ = limit;
  first_ = next_ = Planted(Flaw::kVersionsStartAnew) ? 1 : std::max<uint64_t>(limit, 1);
}

void VersionNumbers::RaiseLimit() {
  limit_ = (next_ / format::kVersionStride + 1) * format::kVersionStride;
  nvm_.Store64(limit_at_, format::VersionLimitWord(limit_));
  nvm_.Persist(limit_at_, sizeof(uint64_t));
}

}  // namespace erda::server
