// A look at entries of the index that lies between two readings of the shard's word on them (docs/protocol.md, I6,
// I14).
//
// Owns nothing but the fabric's word on the order of Reads. An operation that looks keeps how far its look has come.
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

// How far a look has come.
enum class Look : uint8_t {
  kBefore,  // the client has asked for the reading before the entries
  kAt,      // the client knows the reading before, and has asked for the entries
  kBehind,  // the client has asked for the reading after the entries
  kAll,     // the client has asked for all three together, since the fabric takes Reads in order
};

// An operation that looks at entries of the index.
struct IndexOperation : Operation {
  uint64_t block = 0;         // where it looks
  Look look = Look::kBehind;  // at a neighbourhood, a piece of a window, or a block
  Reading before{};           // the reading before that look
  uint64_t slot_changes = 0;  // the link's number of slot changes when it asked for the entries
  uint32_t times_up = 0;      // how often the link had come up when it asked for them
  uint64_t time_before = 0;   // the shard's time, Read before the entries were
};

class BetweenReadings {
 public:
  BetweenReadings(bool reads_in_order, Posting& posting) : reads_in_order_(reads_in_order), posting_(posting) {}

  [[nodiscard]] bool ReadsInOrder() const { return reads_in_order_ || Planted(Flaw::kReadsInOrder); }
  // Looks at these bytes. The operation is at this step again when what was posted has arrived, and op.look says what
  // that is.
  void Begin(IndexOperation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from);
  // The entries have arrived: reads the shard's word after them.
  void ReadBehind(IndexOperation& op);
  // The reading after the entries has arrived. The link knows it from here on, for the looks that follow.
  static Reading TakeReading(IndexOperation& op);
  // The index had so many blocks that the operation's block was that of its key, or of the place that it looks for.
  [[nodiscard]] static bool IsOfBlock(const IndexOperation& op, const Reading& reading);

 private:
  const bool reads_in_order_;
  Posting& posting_;
};

}  // namespace erda::client
