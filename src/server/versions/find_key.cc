#include "server/versions/find_key.h"

#include "base/bytes.h"

namespace erda::server {

using format::EntryMeta;
using format::ObjectHeader;
using format::ObjectState;

Found FindKey(index::Index& index, const log::ShardLog& log, std::string_view key, uint64_t key_hash) {
  Found found;
  found.entry = index.mender().FindMended(key_hash, [&](index::Slot slot, const format::IndexEntry& entry) {
    const uint32_t head = log.HeadOf(entry);
    const format::LogAddress address = entry.entry_word().new_address();
    const auto bytes = log.BytesAt(head, address);
    if (bytes.size() >= format::ChecksumOffset(key.size())) {
      const auto header = LoadAs<ObjectHeader>(bytes);
      const bool same = header.key_hash == key_hash && header.key_size == key.size() &&
                        bytes.size() >= format::ChecksumOffset(header.label_size()) &&
                        AsString(bytes.subspan(header.key_offset(), key.size())) == key;
      if (same) return true;
    }
    // The tag differs in one bit from the key's, so the entry is most likely another key's.
    if (index.At(slot).entry_meta().tag() != EntryMeta::TagOf(key_hash)) return false;
    // Two keys rarely share a tag, so most calls skip the rest.
    const format::ObjectView view = format::InspectHeader(log.PlaceOf(head, address), bytes);
    const bool other_key =
        view.state != ObjectState::kNothing && EntryMeta::TagOf(view.header.key_hash) == EntryMeta::TagOf(key_hash);
    if (!other_key) found.damaged = slot;
    return false;
  });
  return found;
}

bool CanBeOf(const index::Index& index, index::Slot slot, uint64_t key_hash) {
  const EntryMeta meta = index.At(slot).entry_meta();
  return meta.tag() == EntryMeta::TagOf(key_hash) && index.layout().IsPlaceOf(key_hash, slot, meta.distance());
}

bool IsVersionOf(const index::Index& index, index::Slot slot, const format::ObjectView& view) {
  return view.state != ObjectState::kNothing && view.header.is_value() && CanBeOf(index, slot, view.header.key_hash);
}

}  // namespace erda::server
