#include "index/slots.h"

#include <algorithm>

namespace erda::index {

// Goes block by block: blocks need not be contiguous.
void Slots::Flush(Slot first, uint64_t slots) {
  const format::IndexLayout& layout = view_.layout();
  for (const Slot end = first + slots; first < end;) {
    const Slot next = std::min(end, layout.FirstOf(layout.BlockWith(first) + 1));
    nvm_.Flush(view_.WordOffset(first), (next - first) * sizeof(format::IndexEntry));
    first = next;
  }
}

void Slots::ReplaceAtRest(Slot slot, const format::IndexEntry& entry) { rest_.Replace(slot, view_.At(slot), entry); }

}  // namespace erda::index
