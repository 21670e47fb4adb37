// The kinds of operations: gets, puts and reads of blocks. It finds the kind that takes an operation's next step.
//
// Owns the kinds, and the known locations that gets and puts share. Only the client's thread calls it.
#pragma once

#include "base/clock.h"
#include "client/block.h"
#include "client/connections.h"
#include "client/engine_options.h"
#include "client/get.h"
#include "client/get_now.h"
#include "client/located.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "client/put.h"
#include "erda/client.h"

namespace erda::client {

class Kinds {
 public:
  Kinds(Operations& operations, Connections& connections, Posting& posting, OwnRequests& own_requests,
        const EngineOptions& options, bool reads_in_order, const Clock& clock, ClientStats& stats)
      : locations(options.cache_entries),
        instant_gets(operations, connections, locations, clock, stats),
        gets(operations, connections, posting, locations, own_requests, reads_in_order, clock, stats),
        puts(operations, connections, posting, locations, own_requests, options, stats),
        blocks(operations, connections, posting, reads_in_order, stats) {}
  void Prepare() {
    locations.Prepare();
    gets.Prepare();
    puts.Prepare();
    blocks.Prepare();
  }

  // Begins the operation's steps. REQUIRES: its link is up.
  void Start(Operation& op) {
    switch (op.type) {
      case OpType::kGet:
        return gets.Start(static_cast<GetOp&>(op));
      case OpType::kPut:
        return puts.Start(static_cast<PutOp&>(op));
      case OpType::kBlock:
        return blocks.Start(static_cast<BlockOp&>(op));
    }
  }
  // The last Read that the operation posted has arrived.
  void OnRead(Operation& op) {
    switch (op.type) {
      case OpType::kGet:
        return gets.OnRead(static_cast<GetOp&>(op));
      case OpType::kPut:
        return puts.OnPlaced(static_cast<PutOp&>(op));
      case OpType::kBlock:
        return blocks.OnRead(static_cast<BlockOp&>(op));
    }
  }
  // The control block has arrived that the operation waited for.
  void OnHeads(Operation& op) {
    switch (op.type) {
      case OpType::kGet:
        return gets.OnHeads(static_cast<GetOp&>(op));
      case OpType::kPut:
        return puts.OnHeads(static_cast<PutOp&>(op));
      case OpType::kBlock:
        return blocks.Start(static_cast<BlockOp&>(op));
    }
  }
  // The operation was deferred, and ends now by its result.
  void Deliver(Operation& op) {
    switch (op.type) {
      case OpType::kGet:
        return gets.Deliver(static_cast<GetOp&>(op));
      case OpType::kPut:
        return puts.Deliver(static_cast<PutOp&>(op));
      case OpType::kBlock:
        return blocks.Deliver(static_cast<BlockOp&>(op));
    }
  }

  KnownLocations locations;
  InstantGets instant_gets;
  Gets gets;
  Puts puts;
  Blocks blocks;
};

}  // namespace erda::client
