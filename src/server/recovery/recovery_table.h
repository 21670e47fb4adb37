// Decides about an entry for recovery, as a pure function (docs/protocol.md, "Restart and recovery").
//
//   new version                     stands in        whole one before it,  old one  action
//                                                    newer than the old
//   without a good header,          -                -                     -        damaged: no crash leaves that
//     or of a key that cannot have
//     this entry
//   a tombstone                     the log          -                     -        damaged
//   a tombstone, whole              tombstone slot   -                     -        end the delete
//   a tombstone, not whole          tombstone slot   -                     -        damaged: it was persistent before
//                                                                                   the entry named it
//   a value                         tombstone slot   -                     -        damaged
//   a value, whole                  the log          -                     -        settle it
//   a value, not whole              the log          exists                -        go back to that
//   a value, not whole              the log          does not exist        there    go back to the old one
//   a value, not whole              the log          does not exist        none     free the entry
//
// The table is for entries that are not settled. Settled entries are persistent with their versions, and recovery does
// not change them.
#pragma once

#include <cstdint>

#include "format/object.h"

namespace erda::server {

enum class RecoveryAction : uint8_t { kSettle, kGoBack, kGoBackToOld, kFree, kEndDelete, kDamaged };

struct RecoveryFacts {
  format::ObjectState newest = format::ObjectState::kNothing;  // The object at the entry's new address.
  bool belongs = false;       // It is of a key that can have this entry. Known only if it has a header.
  bool tombstone = false;     // Its header says that it is a tombstone.
  bool in_its_slot = false;   // It stands in a region's tombstone slot.
  bool whole_before = false;  // A version along `previous`, newer than the old one, is whole.
  bool old = false;           // The entry has an old version.
};

[[nodiscard]] constexpr RecoveryAction DecideRecovery(const RecoveryFacts& facts) {
  using format::ObjectState;
  if (facts.newest == ObjectState::kNothing || !facts.belongs) return RecoveryAction::kDamaged;
  if (facts.tombstone != facts.in_its_slot) return RecoveryAction::kDamaged;
  const bool whole = facts.newest == ObjectState::kWhole;
  if (facts.tombstone) return whole ? RecoveryAction::kEndDelete : RecoveryAction::kDamaged;
  if (whole) return RecoveryAction::kSettle;
  if (facts.whole_before) return RecoveryAction::kGoBack;
  return facts.old ? RecoveryAction::kGoBackToOld : RecoveryAction::kFree;
}

}  // namespace erda::server
