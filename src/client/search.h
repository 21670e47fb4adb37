// The search for a key's entry in the index (docs/protocol.md, "Get"):
//
//   entry          read the first half of the key's neighbourhood, and find the entry with the key's tag
//   miss confirm   if no entry has the tag: look at all of the neighbourhood between two readings of the displacement
//                  counter and of the number of blocks (I6, I14). If the index has grown, look in the block where the
//                  key is now
//   farther        if the key's window is larger than its neighbourhood (I15): look at the rest of the window, a piece
//                  at a time, between the same two readings
//
// Owns only a hint: whether the last search missed. Requires a link that is up. Only the client's thread calls it.
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
  format::IndexEntry entry{};            // The entry that it follows.
  uint64_t entry_slot = 0;               // The entry's slot, counted through all blocks.
  uint32_t slots_read = 0;               // The number of slots read, of the neighbourhood or of a piece of the window.
  uint64_t first_slot = 0;               // The first slot read, counted through all blocks.
  format::IndexLayout::Window looked{};  // The slots that it has looked at since the reading before.
  uint32_t foreign_count = 0;            // The number of entries with this key's tag that are another key's.
  std::array<uint64_t, format::kNeighbourhood> foreign;
};

enum class SearchStep : uint8_t {
  kWaits,   // A Read is under way, or the operation has ended with its link.
  kFound,   // The operation follows op.entry now.
  kAbsent,  // The key had no entry at a moment of this operation.
};

class Search {
 public:
  Search(Connections& connections, Posting& posting, bool reads_in_order, ClientStats& stats)
      : connections_(connections), posting_(posting), between_readings_(reads_in_order, posting), stats_(stats) {}

  // Begins a search, or begins it again from the start.
  void Begin(SearchOperation& op);
  // The Read that the search posted has arrived, at step kEntry or at step kMissConfirm.
  SearchStep OnEntryRead(SearchOperation& op);
  SearchStep OnMissConfirm(SearchOperation& op);
  // Searches on, since the entry that it found is another key's.
  SearchStep GoOn(SearchOperation& op);
  // Returns true if the operation waits for the control block to learn the place of its block there. Then it begins
  // again.
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
  bool misses_ = false;  // The last search found nothing at its first look.
};

}  // namespace erda::client
