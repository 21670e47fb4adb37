#include "server/versions/find_key.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace erda::server {

using format::EntryMeta;
using format::ObjectHeader;
using format::ObjectState;

namespace {

// Compares word by word, and makes no call for a short key.
[[gnu::always_inline]] inline bool IsSame(const std::byte* bytes, std::string_view key) {
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr size_t kShort = 8 * kWord;
  if (key.size() < kWord || key.size() > kShort) return std::memcmp(bytes, key.data(), key.size()) == 0;
  const auto differ = [&](size_t at) {
    uint64_t one = 0;
    uint64_t other = 0;
    std::memcpy(&one, bytes + at, kWord);
    std::memcpy(&other, key.data() + at, kWord);
    return one != other;
  };
  const size_t last = key.size() - kWord;
  for (size_t at = 0; at < last; at += kWord) {
    if (differ(at)) return false;
  }
  return !differ(last);
}

// Returns true if the object at the entry's new address has the key in its header. Then describes the object in *found.
// Requires: the entry has the key's tag, and so the key's head.
[[gnu::always_inline]] inline bool NamesKey(const log::ShardLog& log, const format::IndexEntry& entry,
                                            std::string_view key, uint64_t key_hash, Found* found) {
  const auto [offset, bytes] = log.RestAt(found->head, entry.entry_word().new_address());
  if (bytes.size() < format::ChecksumOffset(key.size())) return false;
  const auto header = LoadAs<ObjectHeader>(bytes);
  const bool is_key = header.key_hash == key_hash && header.key_size == key.size() &&
                      bytes.size() >= format::ChecksumOffset(header.label_size()) &&
                      IsSame(bytes.data() + header.key_offset(), key);
  if (!is_key) return false;
  found->word = entry.entry_word();
  if (header.is_value()) {
    found->value_at = offset;
    found->value_bytes = static_cast<uint32_t>(std::min<uint64_t>(SpaceOf(header), bytes.size()));
  }
  return true;
}

// The object of the entry as it stands. kNothing: no object there has the entry's tag.
[[gnu::noinline]] bool HasObjectOfItsTag(const log::ShardLog& log, const format::IndexEntry& entry) {
  const format::ObjectView view = log.InspectHeader(log.HeadOf(entry), entry.entry_word().new_address());
  return view.state != ObjectState::kNothing && EntryMeta::TagOf(view.header.key_hash) == entry.entry_meta().tag();
}

// A bit of a tag may have flipped while no server ran, and the server does not know it yet. The key must not get
// another entry. An entry of another key also has a tag near the key's, and an object of that tag: it is not touched.
[[gnu::noinline]] void FindAtRest(index::Index& index, const log::ShardLog& log, std::string_view key,
                                  uint64_t key_hash, Found* found) {
  if (!found->entry) {
    found->entry = index.mender().FindNearTag(key_hash, [&](index::Slot slot, const format::IndexEntry& entry) {
      return NamesKey(log, entry, key, key_hash, found) && !HasObjectOfItsTag(log, index.At(slot));
    });
  }
  if (found->entry) index.mender().UndoPlace(*found->entry, key_hash);
}

}  // namespace

Found FindKey(index::Index& index, const log::ShardLog& log, std::string_view key, uint64_t key_hash) {
  Found found;
  found.head = log.HeadOf(key_hash);
  found.entry = index.mender().FindMended(key_hash, [&](index::Slot slot, const format::IndexEntry& entry) {
    if (NamesKey(log, entry, key, key_hash, &found)) return true;
    // Two keys rarely share a tag, so most calls skip the rest.
    if (!HasObjectOfItsTag(log, entry)) found.damaged = slot;
    return false;
  });
  if (index.mender().rest_is_due()) [[unlikely]]
    FindAtRest(index, log, key, key_hash, &found);
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
