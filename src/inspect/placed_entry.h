// An index entry with its place: its index slot, and the head that its addresses are in.
#pragma once

#include <cstdint>

#include "format/geometry.h"
#include "format/index_entry.h"

namespace erda::inspect {

struct PlacedEntry {
  uint64_t index_slot = 0;
  uint32_t head = 0;
  format::EntryWord word;
  format::EntryMeta meta;

  static PlacedEntry Of(const format::Geometry& geometry, uint64_t index_slot, const format::IndexEntry& entry) {
    const format::EntryMeta meta = entry.entry_meta();
    return {index_slot, geometry.HeadOf(meta.tag()), entry.entry_word(), meta};
  }
};

}  // namespace erda::inspect
