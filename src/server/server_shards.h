// The shards of a server with their threads, as one: it makes them, takes them up, starts, stops and closes them, and
// sums their numbers.
//
// Owns the shards and their clock. REQUIRES: pool, fabrics and gate outlive it. The threads that open, start, reload
// and stop the server call it, one at a time. Any thread may call the const functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/server_time.h"
#include "erda/activity.h"
#include "erda/server.h"
#include "server/control/counters.h"
#include "server/pool/formatted_pool.h"
#include "server/server_fabrics.h"
#include "server/sessions/gate.h"
#include "server/threads.h"

namespace erda::server {

class ServerShards {
 public:
  using TellDamage = std::function<void(std::string_view key)>;

  ServerShards() = default;
  ServerShards(const ServerShards&) = delete;
  ServerShards& operator=(const ServerShards&) = delete;
  // Nobody wakes the threads after that.
  ~ServerShards();

  // Makes the shards of the pool's geometry. gate: null if the server demands no token.
  Status Make(FormattedPool& pool, const ServerFabrics& fabrics, const ServerOptions& options, const Gate* gate);
  // Takes the shards up, and recovers or verifies them if the pool needs that. `report` is then set. `tell` hears of
  // each key whose damage that finds; it may be empty.
  Status TakeUp(const FormattedPool& pool, const TellDamage& tell, std::optional<RecoveryReport>* report);

  // Starts the threads, up to the first error.
  Status Start();
  // Stops the threads.
  void Stop();
  // Ends all sessions. Waits a second at most for clients that are in the middle of a Write. A client ends its Write
  // soon, unless its process is stopped. REQUIRES: the threads are stopped.
  void EndSessions();
  // Closes the shards, and the sessions that are left. REQUIRES: the threads are stopped.
  void Close();

  void SetLimits(const ServerLimits& limits);
  void TokensChanged();

  // A Doorman hands its clients to these.
  [[nodiscard]] std::vector<std::unique_ptr<ShardThread>>& threads() { return threads_; }
  // Returns the counters of the first shard. They also count the work of the server that belongs to no shard, such as
  // syncs.
  [[nodiscard]] Counters first_counters() const { return threads_.front()->shard().counters(); }
  // Returns a number that grows with each change of the pool.
  [[nodiscard]] uint64_t WrittenBytes() const;
  [[nodiscard]] ServerStats Stats() const;
  [[nodiscard]] Activity WhatWasDone() const;

 private:
  Status Recover(const FormattedPool& pool, const TellDamage& tell, std::optional<RecoveryReport>* report);

  nvm::Pool* pool_ = nullptr;
  std::optional<ServerTime> time_;
  std::vector<std::unique_ptr<ShardThread>> threads_;
};

}  // namespace erda::server
