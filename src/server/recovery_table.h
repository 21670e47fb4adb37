// What recovery does with an entry (docs/protocol.md, "Restart and recovery"), as a pure function.
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
//   a value, not whole              the log          there is              -        go back to that
//   a value, not whole              the log          there is none         there    go back to the old one
//   a value, not whole              the log          there is none         none     free the entry
//
// This is for entries that are not settled; the others are persistent with their versions, and are left alone.
#pragma once

#include <cstdint>

#include "format/object.h"

namespace erda::server {

enum class RecoveryAction : uint8_t { kSettle, kGoBack, kGoBackToOld, kFree, kEndDelete, kDamaged };

struct RecoveryFacts {
  format::ObjectState newest = format::ObjectState::kNothing;  // what stands where the entry's new address leads
  bool belongs = false;       // it is of a key that can have this entry; only known if it has a header
  bool tombstone = false;     // it says that it is one
  bool in_its_slot = false;   // it stands in a region's tombstone slot
  bool whole_before = false;  // along `previous`, newer than the old version, there is a whole one
  bool old = false;           // the entry has an old version
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
