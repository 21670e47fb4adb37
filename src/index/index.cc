#include "index/index.h"

#include <algorithm>

namespace erda::index {

using format::EntryMeta;
using format::IndexEntry;

Index::Index(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t shard, const Published& published,
             EntryObserver* observer)
    : shape_(nvm, geometry, shard, published),
      view_(nvm, geometry, shape_.layout()),
      census_(view_),
      slots_(nvm, view_, geometry, census_),
      news_(view_, geometry, census_, observer),
      publishing_(nvm, slots_, census_, news_),
      moves_(nvm, view_, shard),
      mender_(view_, slots_, census_, news_),
      free_slots_(geometry, view_, shape_, slots_, census_, news_, moves_, published.displacements),
      splitting_(nvm, geometry, view_, shape_, slots_, census_, mender_) {}

bool Index::Count(uint64_t slots) {
  const Slot begin = census_.slots_counted();
  const Slot end = begin + std::min(slots, size() - begin);
  // The last stores of a server that died may be in the CPU's caches only. Callers fence before they rely on a counted
  // slot.
  if (!census_.is_known() && begin < end && !Planted(Flaw::kCountedNotFlushed)) slots_.Flush(begin, end - begin);
  for (Slot slot = begin; slot < end; ++slot) {
    view_.ReadAhead(slot);
    const IndexEntry entry = view_.At(slot);
    slots_.TakeAsItStands(slot, entry);
    slots_.rest().Count(slot, entry);
    census_.CountNext(entry.word != 0);
    if (entry.word != 0) news_.Add(entry);
  }
  return census_.is_complete();
}

void Index::Describe(Slot slot, uint64_t key_hash, uint64_t object_bytes) {
  const uint32_t distance = layout().DistanceTo(slot, key_hash);
  const uint32_t depth = layout().DepthOf(layout().BlockWith(slot));
  slots_.SetMeta(slot, EntryMeta::Make(EntryMeta::TagOf(key_hash), depth, distance, object_bytes));
  if (!Planted(Flaw::kMetaNotFlushed)) slots_.FlushMeta(slot);
}

void Index::StoreMeta(Slot slot, EntryMeta meta) {
  slots_.SetMeta(slot, meta);
  slots_.FlushMeta(slot);
}

}  // namespace erda::index
