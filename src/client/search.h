// The search for a key's entry in the index (docs/protocol.md, "Get"):
//
//   entry          read the first half of the key's neighbourhood, find the entry with its tag
//   miss confirm   if no entry has it: look at all of the neighbourhood between two readings of the displacement
//   counter
//                  and of the number of blocks (I6, I14). If the index has grown, look in the block where the key is
//                  now
//   farther        if the key's window is larger than its neighbourhood (I15): look at the rest of it, a piece at a
//                  time, between the same two readings
//
// Owns a hint alone: whether the last search missed. Requires a link that is up. Only the client's thread calls it.
#pragma once

#include <array>
#include <cstdint>

#include "client/between_readings.h"
#include "client/connections.h"
#include "client/posting.h"
#include "erda/client.h"
#include "format/control_block.h"
#include "format/index_entry.h"
#include "format/index_layout.h"

namespace erda::client {

// An operation that searches for its key's entry.
struct SearchOperation : IndexOperation {
  format::IndexEntry entry{};            // the entry that it follows
  uint64_t entry_slot = 0;               // counted through all blocks
  uint32_t slots_read = 0;               // slots of the neighbourhood, or of a piece of the window, that are read
  uint64_t first_slot = 0;               // the first of them, counted through all blocks
  format::IndexLayout::Window looked{};  // the slots that it has looked at since the reading before
  uint32_t foreign_count = 0;            // entries with this key's tag that turned out to be another key's
  std::array<uint64_t, format::kNeighbourhood> foreign;
};

enum class SearchStep : uint8_t {
  kWaits,   // something is under way, or the operation has ended with its link
  kFound,   // op.entry is to be followed
  kAbsent,  // the key had no entry at a moment of this operation
};

class Search {
 public:
  Search(Connections& connections, Posting& posting, bool reads_in_order, ClientStats& stats)
      : connections_(connections), posting_(posting), between_readings_(reads_in_order, posting), stats_(stats) {}

  // Begins, or begins again from the start.
  void Begin(SearchOperation& op);
  // The Read that it posted has ended, at step kEntry or at step kMissConfirm.
  SearchStep OnEntryRead(SearchOperation& op);
  SearchStep OnMissConfirm(SearchOperation& op);
  // The entry that was found is another key's.
  SearchStep GoOn(SearchOperation& op);
  // An operation that waits for the control block waits to learn of its block there, and then begins again.
  [[nodiscard]] static bool WaitsForBlock(const SearchOperation& op) { return op.block == kNoBlock; }

 private:
  static constexpr uint64_t kNoBlock = UINT64_MAX;

  void WaitForBlock(SearchOperation& op);
  void ConfirmMiss(SearchOperation& op, uint64_t block);
  void GoFarther(SearchOperation& op, format::Reaches reaches);
  bool LookFarther(SearchOperation& op, format::Reaches reaches);

  Connections& connections_;
  Posting& posting_;
  BetweenReadings between_readings_;
  ClientStats& stats_;
  bool misses_ = false;  // the last search found nothing at its first look
};

}  // namespace erda::client
