// Hears of every change of an index entry, and so of the log addresses that entries name. The log implements it.
//
// Owns nothing. The shard's thread calls it, in the middle of a change of the index (entry_news.h).
#pragma once

#include <cstdint>

#include "format/entry_word.h"
#include "format/index_entry.h"

namespace erda::index {

// The change of an entry by a version that is published. The shard stores the entry's word twice: `after`, and then the
// same as settled.
struct EntryChange {
  uint32_t head;
  format::EntryWord before;
  format::EntryWord after;
  // The objects, if `before` names a settled value. They save the observer two looks into the log. With left_at = 0 the
  // observer looks.
  uint64_t left_at = 0;     // The pool offset of that value.
  uint32_t left_bytes = 0;  // The space of that value, by its header.
  uint32_t new_bytes = 0;   // The space of the new version.
};

class EntryObserver {
 public:
  EntryObserver() = default;
  EntryObserver(const EntryObserver&) = delete;
  EntryObserver& operator=(const EntryObserver&) = delete;
  // A counted entry of the head names what `after` names, and no longer what `before` names. An empty word names
  // nothing. An entry that moves to another slot names the same addresses, and is no change.
  virtual void OnEntryChanged(uint32_t head, format::EntryWord before, format::EntryWord after) = 0;
  // The index is about to store `after` to an entry, counted or not. before: the entry as it stands in its slot.
  virtual void OnEntryStored(uint32_t head, const format::IndexEntry& before, format::EntryWord after) = 0;
  // These two are for a published change with known objects. OnValueLeft takes the place of OnEntryStored, and
  // OnValueReplaced that of OnEntryChanged for both stores.
  virtual void OnValueLeft(uint64_t offset) = 0;
  virtual void OnValueReplaced(const EntryChange& change) = 0;

 protected:
  ~EntryObserver() = default;
};

}  // namespace erda::index
