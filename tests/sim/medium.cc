#include "sim/medium.h"

#include "base/bytes.h"
#include "base/test_hash.h"
#include "format/log_layout.h"
#include "format/pool_index.h"

namespace erda::sim {

using format::IndexEntry;
using format::LogAddress;

std::optional<Medium::Version> Medium::VersionAt(uint32_t head, LogAddress address) const {
  if (address.none() || geometry_.SlotOf(address) >= geometry_.slots_per_head()) return std::nullopt;
  for (uint32_t region = 0; region < geometry_.regions(); ++region) {
    const auto word = LoadAs<uint64_t>(pool_.subspan(format::kRegionTableOffset + region * sizeof(uint64_t)));
    const format::RegionWord linked(word);
    if (!linked.linked() || linked.HeadIn(geometry_) != head || linked.SlotIn(geometry_) != geometry_.SlotOf(address))
      continue;
    Version version;
    version.head = head;
    version.at = geometry_.RegionOffset(region) + geometry_.OffsetInRegion(address);
    const uint64_t left = geometry_.segment_size - geometry_.OffsetInRegion(address) % geometry_.segment_size;
    version.view =
        format::InspectObject({pool_seed_, head, address, linked.generation()}, pool_.subspan(version.at, left));
    if (version.view.state != format::ObjectState::kWhole) return std::nullopt;
    version.bytes = format::ObjectBytes(version.view.header.label_size(), version.view.header.value_size);
    return version;
  }
  return std::nullopt;
}

std::optional<Medium::Version> Medium::SettledOf(std::string_view key) const {
  const uint64_t hash = HashKey(key);
  const format::PoolIndex index(pool_, geometry_, geometry_.ShardOf(hash));
  const auto window = index.WindowOf(hash);
  for (uint64_t slot = window.begin; slot < window.end; ++slot) {
    const IndexEntry entry = index.At(slot);
    if (entry.word == 0 || !entry.entry_word().settled()) continue;
    // If the damaged copy was the last one, another key's entry may stand there now.
    if (entry.entry_meta().tag() != format::EntryMeta::TagOf(hash)) continue;
    auto version = VersionAt(index.HeadOf(entry), entry.entry_word().new_address());
    if (!version || version->view.key != key) continue;
    version->entry_at = index.OffsetOf(slot);
    return version;
  }
  return std::nullopt;
}

std::optional<Medium::Version> Medium::Before(const Version& version) const {
  auto before = VersionAt(version.head, LogAddress(version.view.header.previous));
  if (!before || before->view.key != version.view.key) return std::nullopt;
  return before;
}

}  // namespace erda::sim
