// The inspection of a shard's index: every entry, and the objects that it names.
//
// Used for one shard, by one thread. It changes the report, the damage, and the budgets of the objects' reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/index_layout.h"
#include "format/rest_sum.h"
#include "inspect/client_chunks.h"
#include "inspect/object_reader.h"
#include "inspect/placed_entry.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

class IndexInspection {
 public:
  // verify: also read the values of settled entries. REQUIRES: record and log of the shard are inspected.
  IndexInspection(const ShardBytes& bytes, const format::IndexLayout& layout, bool verify, ObjectReader* objects,
                  ShardFindings* findings)
      : bytes_(bytes),
        layout_(layout),
        verify_(verify),
        objects_(*objects),
        findings_(*findings),
        report_(findings->report()),
        at_rest_(format::RestSum::In(bytes.Load<format::ShardRecord>(format::ShardRecordOffset(bytes.shard())))) {}

  // Inspects each entry, and counts them.
  void Inspect();
  // Adds the damage that counts and sums alone tell. REQUIRES: Inspect.
  void CheckSums();

 private:
  [[nodiscard]] PlacedEntry EntryIn(uint64_t index_slot) const;
  // Adds the damage if the entries differ from those that the last server left.
  void CheckRest();
  // Returns whether a split has copied the entry into its new block, and a crash left it in the old block.
  [[nodiscard]] bool IsLeftOver(const PlacedEntry& entry) const;
  void LookAtEntry(const PlacedEntry& entry);
  void LookAtUnsettled(const PlacedEntry& entry, const format::ObjectView& newest);
  void LookAtDelete(const PlacedEntry& entry, const format::ObjectView& newest);
  void LookForOlder(const PlacedEntry& entry, const format::ObjectView& newest, const format::ObjectView& old);
  // Returns what is wrong with an entry in any state, or nothing.
  [[nodiscard]] std::string FindFault(const PlacedEntry& entry, const format::ObjectView& newest) const;
  [[nodiscard]] bool IsKeyOf(const PlacedEntry& entry, uint64_t key_hash) const;
  // Returns whether the entry names a tombstone slot.
  [[nodiscard]] bool IsDelete(const PlacedEntry& entry) const;
  void AddDamage(const PlacedEntry& entry, std::string what);

  const ShardBytes& bytes_;
  const format::IndexLayout& layout_;
  const bool verify_;
  ObjectReader& objects_;
  ShardFindings& findings_;
  ShardReport& report_;
  const std::optional<format::RestSum> at_rest_;
};

}  // namespace erda::inspect
