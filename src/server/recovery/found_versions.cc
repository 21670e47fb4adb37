#include "server/recovery/found_versions.h"

#include <optional>

#include "format/superblock.h"
#include "format/version_limit.h"

namespace erda::server {

namespace {

// A shard gives out fewer versions than this while a page of its file stays unwritten. A client may know of a version
// that got lost, and no other version may get that number.
constexpr uint64_t kVersionLeap = uint64_t{1} << 38;
static_assert(kVersionLeap % format::kVersionStride == 0);

std::optional<uint64_t> RecordedLimit(const nvm::Writer& nvm, uint32_t shard) {
  return format::VersionLimitIn(
      nvm.Load64(format::ShardRecordOffset(shard) + offsetof(format::ShardRecord, version_limit)));
}

}  // namespace

uint64_t FoundVersions::end() const { return RecordedLimit(nvm_, shard_).value_or(UINT64_MAX / 4) + kVersionLeap; }

uint64_t FoundVersions::NextLimit() const {
  const uint64_t before = std::max(RecordedLimit(nvm_, shard_).value_or(0), newest_);
  return (before / format::kVersionStride + 1) * format::kVersionStride + kVersionLeap;
}

}  // namespace erda::server
