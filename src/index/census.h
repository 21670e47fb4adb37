// How many slots of an index are used, as far as the shard knows.
//
// Owns the number of used slots, and how far the slots are counted. After a clean close a server knows the number from
// the start. In any case the shard counts all slots in their order, in steps, while it already uses the index
// (Index::Count). The observer knows the entries of counted slots alone. The shard's thread calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "format/rest_sum.h"
#include "index/view.h"

namespace erda::index {

class Census {
 public:
  explicit Census(const View& view) : view_(view) {}

  // No slot is counted from now on. used: the number of used slots, if the pool says it.
  void Begin(std::optional<uint64_t> used) {
    counted_ = 0;
    known_ = used.has_value();
    used_ = used.value_or(0);
  }
  // Counts the next slot.
  void CountNext(bool is_used) {
    if (is_used && !known_) ++used_;
    ++counted_;
  }
  // The slot became used (change: 1) or free (-1).
  void Change(Slot slot, int change) {
    if (!known_ && !Has(slot)) return;
    if (change < 0 && used_ == 0) return;  // The mender accepted an entry in a slot that counts as free.
    used_ += change;
  }
  // All slots are counted, also those of a new block. Requires: all others were. The caller has filled the new block
  // with entries of used slots.
  void AddBlock() { counted_ = view_.size(); }

  [[nodiscard]] bool Has(Slot slot) const { return slot < counted_; }
  // Returns how many slots are counted: the first ones.
  [[nodiscard]] uint64_t slots_counted() const { return counted_; }
  [[nodiscard]] bool is_complete() const { return counted_ == view_.size(); }
  [[nodiscard]] bool is_known() const { return known_; }
  // Returns the number of used slots, or of those that are counted if the number is unknown. For each entry that the
  // mender accepted, the number may be wrong by one.
  [[nodiscard]] uint64_t used() const { return used_; }
  struct Totals {
    uint64_t used = 0;
    format::RestSum sum;
  };
  // Reads all slots. Returns the number of used slots, and the sum that a clean close stores.
  [[nodiscard]] Totals Total() const;

 private:
  const View view_;
  uint64_t used_ = 0;     // Of the first counted_ slots, or of all if known_.
  uint64_t counted_ = 0;  // All slots, except for some time after the start.
  bool known_ = false;
};

}  // namespace erda::index
