// A look at entries of the index, between two readings of the shard's words about them (docs/protocol.md, I6, I14). The
// words are the displacement counter and the number of blocks.
//
// Owns only the knowledge whether the fabric keeps Reads in order. An operation that looks keeps the state of its look.
// Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <span>

#include "base/planted.h"
#include "client/operation.h"
#include "client/posting.h"
#include "client/reading.h"
#include "fabric/fabric.h"

namespace erda::client {

// The state of a look.
enum class Look : uint8_t {
  kBefore,  // The client has asked for the reading before the entries.
  kAt,      // The client knows the reading before, and has asked for the entries.
  kBehind,  // The client has asked for the reading after the entries.
  kAll,     // The client has asked for all three together, since the fabric takes Reads in order.
};

// An operation that looks at entries of the index.
struct IndexOperation : Operation {
  uint64_t block = 0;         // Where it looks.
  Look look = Look::kBehind;  // At a neighbourhood, a piece of a window, or a block.
  Reading before{};           // The reading before that look.
  uint64_t slot_changes = 0;  // The link's number of slot changes when it asked for the entries.
  uint32_t times_up = 0;      // How often the link had come up when it asked for them.
  uint64_t time_before = 0;   // The shard's time, Read before the entries.
};

class BetweenReadings {
 public:
  BetweenReadings(bool reads_in_order, Posting& posting) : reads_in_order_(reads_in_order), posting_(posting) {}

  [[nodiscard]] bool ReadsInOrder() const { return reads_in_order_ || Planted(Flaw::kReadsInOrder); }
  // Looks at these bytes. When the posted Reads have arrived, the operation is at this step, and op.look says which
  // Reads these were.
  void Begin(IndexOperation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from);
  // Reads the shard's words after the entries. Requires: the entries have arrived.
  void ReadBehind(IndexOperation& op);
  // Returns the reading after the entries, which has arrived. The link remembers it for later looks.
  static Reading TakeReading(IndexOperation& op);
  // Returns true if the operation's block was the block of its key, by the number of blocks in the reading. For a scan:
  // the block of the place that it looks for.
  [[nodiscard]] static bool IsOfBlock(const IndexOperation& op, const Reading& reading);

 private:
  const bool reads_in_order_;
  Posting& posting_;
};

}  // namespace erda::client
