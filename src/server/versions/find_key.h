// Finds the index entry of a key by the header of the object that it names. Changes nothing, except that it undoes
// flipped bits in the entries that it meets. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/object.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "server/versions/all_published.h"

namespace erda::server {

// The entries of the index that may be of a key.
struct Found {
  std::optional<index::Slot> entry;
  // An entry with the key's tag that may be the key's: its object is damaged, so it names no key.
  std::optional<index::Slot> damaged;
  uint32_t head = 0;  // The key's.
  // The word of the entry, and the object that it names as new. If that is a value, value_at is its offset in the pool,
  // and value_bytes its space by the header, which is not verified. Otherwise they are 0.
  format::EntryWord word;
  uint64_t value_at = 0;
  uint32_t value_bytes = 0;
};

// Looks for damage only as far as the key's entry.
[[nodiscard]] Found FindKey(index::Index& index, const log::ShardLog& log, std::string_view key, uint64_t key_hash);
// Does the same when no put waits, so that it finds the entry of each put.
[[nodiscard]] inline Found FindKey(AllPublished /*proof*/, index::Index& index, const log::ShardLog& log,
                                   std::string_view key, uint64_t key_hash) {
  return FindKey(index, log, key, key_hash);
}

// Returns true if tag and place of the slot's entry are as the key's would be.
[[nodiscard]] bool CanBeOf(const index::Index& index, index::Slot slot, uint64_t key_hash);
// Returns true if a value with this header can be the version that the slot's entry names.
[[nodiscard]] bool IsVersionOf(const index::Index& index, index::Slot slot, const format::ObjectView& view);

}  // namespace erda::server
