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
  if (nvm_.holds_later()) RaiseLimit();
}

// On a pool with a journal the record says one stride more. So the numbers up to limit_ can be given out when the
// medium holds the limit that the call before has recorded. A shard waits for that only if it gives out a whole stride
// meanwhile. If the medium has failed, the new numbers are in no answer of an operation: those come later in the
// stream.
void VersionNumbers::RaiseLimit() {
  constexpr uint64_t kStride = format::kVersionStride;
  const uint64_t ahead = nvm_.holds_later() ? kStride : 0;
  if (nvm_.held() < place_) (void)nvm_.AwaitHeld();
  limit_ = (next_ / kStride + 1) * kStride;
  Record(limit_ + ahead);
  place_ = nvm_.place();
}

void VersionNumbers::Record(uint64_t limit) {
  nvm_.Store64(limit_at_, format::VersionLimitWord(limit));
  nvm_.Persist(limit_at_, sizeof(uint64_t));
}

}  // namespace erda::server
