// The client's protocol: operations as state machines over the fabric contract. It owns no thread, and reads only the
// clock that it is given. Client drives it in production, and a seeded loop in tests. Only one thread calls it at a
// time.
//
// The engine owns the parts, and begins operations. Connections makes the connections, Operations is the table of
// operations, and Posting posts their requests. Kinds takes the steps of each kind of operation, and EventLoop hands it
// the completions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "client/block.h"
#include "client/buffer.h"
#include "client/connections.h"
#include "client/engine_options.h"
#include "client/event_loop.h"
#include "client/get_now.h"
#include "client/kinds.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "client/put_op.h"
#include "erda/client.h"
#include "fabric/fabric.h"

namespace erda::client {

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Create(std::shared_ptr<fabric::Fabric> fabric, std::string address,
                                                const EngineOptions& options, const Clock& clock);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] Connections& connections() { return connections_; }

  // These do the same as in Client. The callback runs in a later Poll.
  Status Get(std::string_view key, Client::GetCallback&& done);
  Status GetVersioned(std::string_view key, Client::GetVersionedCallback&& done);
  Status Put(std::string_view key, std::string_view value, Client::DoneCallback&& done);
  Status Put(std::string_view key, std::string_view value, const PutOptions& options, Client::PutCallback&& done);
  Status Delete(std::string_view key, Client::DoneCallback&& done) { return Delete(key, {}, std::move(done)); }
  Status Delete(std::string_view key, const DeleteOptions& options, Client::DoneCallback&& done);
  Status Increment(std::string_view key, int64_t delta, Client::IncrementCallback&& done);
  // These use registered memory of the caller.
  Result<std::shared_ptr<Buffer::Memory>> MakeBuffer(size_t value_bytes);
  Status Get(std::string_view key, const std::shared_ptr<Buffer::Memory>& into, Client::GetCallback&& done);
  Status Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
             Client::DoneCallback&& done);
  Status Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size, const PutOptions& options,
             Client::PutCallback&& done);
  // A get without an operation (get_now.h). If it returns kNo, the caller calls Get.
  using Now = InstantGets::Outcome;
  [[nodiscard]] Now GetNow(std::string_view key, VersionedView* found) {
    return kinds_.instant_gets.GetNow(key, found);
  }
  // For scans (scan.h): reads the block of the index where keys with these low bits of their hashes are.
  // REQUIRES: the client is connected, and the shard exists.
  Status ReadBlock(uint32_t shard, uint32_t hash_low, BlockCallback&& done);
  // For scans: gets the key of an entry, and its value if with_value.
  Status GetEntry(const FoundEntry& found, bool with_value, EntryCallback&& done);
  // REQUIRES: the client is connected, and the shard exists.
  Status Clean(uint32_t shard, Client::DoneCallback&& done);

  // As in EventLoop, which also has the functions for a caller that sleeps.
  size_t Poll() { return event_loop_.Poll(); }
  [[nodiscard]] EventLoop& event_loop() { return event_loop_; }

  [[nodiscard]] uint32_t in_flight() const { return operations_.in_flight(); }
  [[nodiscard]] uint32_t queue_depth() const { return options_.queue_depth; }
  [[nodiscard]] const ClientStats& stats() const { return stats_; }

 private:
  Engine(std::shared_ptr<fabric::Fabric> fabric, std::string address, const EngineOptions& options, const Clock& clock);
  Status Prepare();
  // Returns the taker of puts with values. First polls a client that was idle, if it has chunks. A server may have
  // revoked one meanwhile, and a put must not use that.
  PutTaker& TakerOfValues() {
    if (operations_.in_flight() == 0 && connections_.links().HasChunks()) Poll();
    return kinds_.puts.taker();
  }
  template <class Op, class Callback>
  Status Begin(Op& op, Callback&& done);

  const std::shared_ptr<fabric::Fabric> fabric_;
  const EngineOptions options_;
  ClientStats stats_;
  Operations operations_;  // first, so that their memory outlives the connections that use it
  Connections connections_;
  Posting posting_;
  OwnRequests own_requests_;
  Kinds kinds_;
  EventLoop event_loop_;
};

}  // namespace erda::client
