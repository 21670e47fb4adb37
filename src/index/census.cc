#include "index/census.h"

namespace erda::index {

Census::Totals Census::Total() const {
  Totals totals;
  for (Slot slot = 0; slot < view_.size(); ++slot) {
    view_.ReadAhead(slot);
    const format::IndexEntry entry = view_.At(slot);
    totals.used += entry.word == 0 ? 0 : 1;
    totals.sum += format::RestSum::Of(slot, entry);
  }
  return totals;
}

}  // namespace erda::index
