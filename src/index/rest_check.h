// Finds what has changed in the index while no server ran. Sums the entries that the last server left (RestSum), while
// the index counts its slots and stores entries already.
//
// Owns the sum. Not thread-safe: the index calls it, on the shard's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "format/rest_sum.h"

namespace erda::index {

class RestCheck {
 public:
  RestCheck() = default;
  // at_rest: the sum that the last server left of that many slots. Nothing: unknown, so there is nothing to compare.
  RestCheck(std::optional<format::RestSum> at_rest, uint64_t slots) : missing_(at_rest), slots_(slots) {}

  // The sum is not compared yet.
  [[nodiscard]] bool is_due() const { return missing_.has_value(); }

  // Counts the entry of a slot. The index calls it once for each slot. After it, stores to the slot change nothing
  // here.
  void Count(uint64_t slot, const format::IndexEntry& entry) {
    if (missing_) *missing_ -= format::RestSum::Of(slot, entry);
  }
  // The index is about to store `after` in a slot that is not counted yet. Corrects the sum, so that Count of `after`
  // has the effect of Count of `before`. Ignores slots that the index did not have at rest.
  void Replace(uint64_t slot, const format::IndexEntry& before, const format::IndexEntry& after) {
    if (!missing_ || slot >= slots_) return;
    *missing_ -= format::RestSum::Of(slot, before);
    *missing_ += format::RestSum::Of(slot, after);
  }
  // Ends the comparison. Returns the sum that the last server left, less that of the entries that were found. Requires:
  // Count was called for all slots.
  format::RestSum Take() {
    const format::RestSum difference = missing_.value_or(format::RestSum());
    missing_.reset();
    return difference;
  }

 private:
  std::optional<format::RestSum> missing_;  // from the sum of the last server
  uint64_t slots_ = 0;
};

}  // namespace erda::index
