// One shard that clients reach on two simulated fabrics at once, and clients of both.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/engine.h"
#include "fabric/sim/network.h"
#include "server/crash_pool.h"
#include "server/pool/formatted_pool.h"
#include "server/shard.h"

namespace erda::sim {

class PortsTest : public testing::Test {
 protected:
  static constexpr size_t kPorts = 2;

  explicit PortsTest(bool windows = false, bool nic_writes = false);
  void SetUp() override { Serve({}); }
  void Serve(const std::array<format::FlushMethod, kPorts>& flush_methods);
  // Serves a pool with a journal, whose disk is disk_.
  void ServeWithJournal();

  // Makes a client on that port. Its fabric has the name `name`.
  std::unique_ptr<client::Engine> MakeClient(const std::string& name, size_t port, PutPath path = PutPath::kReserve,
                                             uint32_t user = 0);
  // The server admits the clients that ask for a connection.
  void Admit();
  // Steps clients, server and network until `done` returns true. Returns false if that never happens.
  bool RunUntil(const std::vector<client::Engine*>& clients, const std::function<bool()>& done);

  // Returns the value, or the name of the code.
  std::string Get(client::Engine& client, const std::string& key);
  Code Put(client::Engine& client, const std::string& key, const std::string& value);

  [[nodiscard]] uint64_t Count(format::Counter counter) const { return shard_->counters().Get(counter); }
  // Returns the number of moments at which clients have posted. Each is one doorbell, and begins a round trip.
  [[nodiscard]] size_t Doorbells() const { return doorbells_.size(); }

  // Options of the shard, to be set before Serve. The shard's clock is the simulated one.
  server::ShardOptions shard_options_;
  // If not null, Serve uses this pool and not "dram:".
  std::unique_ptr<nvm::Pool> medium_;
  server::CrashPool* disk_ = nullptr;
  std::vector<std::string> doorbells_;
  fabric::SimNetwork network_;
  std::vector<std::shared_ptr<fabric::Fabric>> fabrics_;
  std::unique_ptr<server::FormattedPool> pool_;
  std::vector<server::PoolRegions> regions_;
  std::vector<std::unique_ptr<fabric::CompletionQueue>> queues_;
  std::vector<std::unique_ptr<fabric::Listener>> listeners_;
  std::unique_ptr<server::Shard> shard_;
};

}  // namespace erda::sim
