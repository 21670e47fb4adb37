// Reads of a whole block of the index, for scans (docs/protocol.md, "Scan").
//
// Owns the operations of this kind. Requires: the link is up when an operation starts. Only the client's thread calls
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "client/between_readings.h"
#include "client/connections.h"
#include "client/operations.h"
#include "erda/client.h"
#include "format/index_entry.h"

namespace erda::client {

// An entry of the index, as a Read of its block found it.
struct FoundEntry {
  uint32_t shard = 0;
  uint32_t times_up = 0;      // How often the link had come up.
  uint64_t slot_changes = 0;  // The link's number of slot changes when it asked for the block.
  uint64_t time_before = 0;   // The shard's time, Read before the block.
  uint64_t time_behind = 0;   // The shard's time, Read after the block.
  uint64_t block = 0;
  uint64_t slot = 0;  // Counted through all blocks.
  format::IndexEntry entry{};
};
// A block between two readings: each key that was there all the time stands in one of its slots. `first` has the
// members that all its entries share, and the number of slot 0. `slots` is valid during the call only.
struct BlockView {
  FoundEntry first;
  uint32_t depth = 0;  // how many low bits of the hash the keys of the block share
  std::span<const std::byte> slots;
};
using BlockCallback = std::function<void(const Result<BlockView>&)>;

struct BlockOp : IndexOperation {
  static constexpr OpType kType = OpType::kBlock;

  uint32_t reads = 0;  // Reads of the block that were begun
  BlockCallback done;

  // A new operation begins in this place.
  void BeginAgain() {
    Operation::BeginAgain();
    reads = 0;
  }
  // The operation has ended. Frees large memory: a put would need one more completion to send from memory as large as a
  // block.
  void Clear() {
    done = nullptr;
    large.reset();
  }
};

class Blocks {
 public:
  Blocks(Operations& operations, Connections& connections, Posting& posting, bool reads_in_order, ClientStats& stats)
      : operations_(operations), connections_(connections), between_readings_(reads_in_order, posting), stats_(stats) {}
  void Prepare() { operations_.AddKind(&ops_); }

  // Returns an operation that reads the block of the keys with these low bits of their hashes. REQUIRES: there is room
  // for an operation, and the shard exists.
  BlockOp& Take(uint32_t shard, uint32_t hash_low);
  // Starts the operation. Requires: the link is up, and the control block has arrived if the operation waited for it.
  void Start(BlockOp& op);
  // The Reads that the operation posted have arrived.
  void OnRead(BlockOp& op);
  // Ends an operation that was deferred, with its result.
  void Deliver(BlockOp& op) { End(op, Result<BlockView>(std::move(op.result))); }

 private:
  void Fail(BlockOp& op, Status status);
  void End(BlockOp& op, const Result<BlockView>& block);

  Operations& operations_;
  Connections& connections_;
  BetweenReadings between_readings_;
  ClientStats& stats_;
  std::vector<BlockOp> ops_;
};

}  // namespace erda::client
