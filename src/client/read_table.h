// Decides what a get does with the version that it has just read, as a pure function (docs/protocol.md, "Get").
//
//   version read                                  flush method  entry       step
//   whole, settled                                any           -           return it
//   whole, not settled, put with kPlaced          any           -           return it
//   whole, not settled, put with kPersisted       none          -           return it: the medium has it already
//   the same, flushed by Reads                    any           -           return it: its put may be acknowledged, and
//                                                                           a reader finds it past the caches
//   the same, flushed by the server               not none      -           the next older: its put is not acknowledged
//                                                                           yet, and a power cut could undo it
//   the same, a tombstone                         not none      not known   look at the entry again: it may have named
//                                                                           an earlier tombstone in this place
//   the same, a tombstone                         not none      changed     start again
//   the same, a tombstone                         not none      unchanged   the next older, as above
//   not whole                                     any           not known   look at the entry again
//   not whole                                     any           changed     start again
//   not whole, not settled                        any           unchanged   the next older; tell the server
//   not whole, settled                            any           unchanged   damage: an older value would be wrong
//
// The writer decides how a version is flushed, so the version's header says that. The flush method of a reader is
// "none" only if that of every client is. Any thread may call it.
#pragma once

#include <cstdint>

#include "base/planted.h"
#include "format/hello.h"
#include "format/object.h"

namespace erda::client {

enum class EntryLook : uint8_t { kNotYet, kUnchanged, kChanged };

enum class ReadStep : uint8_t { kReturn, kOlder, kOlderAndReport, kLookAgain, kRestart, kDamaged };

struct ReadFacts {
  bool whole = false;
  bool settled = false;          // The entry names it as its settled new version, or as its old one.
  bool persisted = false;        // Its put asked for kPersisted. Known only if it is whole.
  bool tombstone = false;        // It has no value. Known only if it is whole.
  bool flushed_by_read = false;  // Its writer flushes it by a Read. Known only if it is whole.
  format::FlushMethod flush = format::FlushMethod::kNone;
  EntryLook look = EntryLook::kNotYet;  // The state of the entry since the version was read.
};

[[nodiscard]] constexpr ReadStep DecideRead(const ReadFacts& facts) {
  if (facts.whole) {
    const bool could_be_undone =
        !facts.settled && facts.persisted && !facts.flushed_by_read && facts.flush != format::FlushMethod::kNone;
    if (!could_be_undone || Planted(Flaw::kReturnsUnsettled)) return ReadStep::kReturn;
    if (!facts.tombstone) return ReadStep::kOlder;
  }
  switch (facts.look) {
    case EntryLook::kNotYet:
      return ReadStep::kLookAgain;
    case EntryLook::kChanged:
      return ReadStep::kRestart;
    case EntryLook::kUnchanged:
      break;
  }
  if (facts.whole) return ReadStep::kOlder;
  if (Planted(Flaw::kDamageIsOlder)) return ReadStep::kOlderAndReport;
  return facts.settled ? ReadStep::kDamaged : ReadStep::kOlderAndReport;
}

}  // namespace erda::client
