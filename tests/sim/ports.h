// One shard that is reached on two simulated fabrics at once, and clients of either.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/engine.h"
#include "fabric/sim/network.h"
#include "server/pool/formatted_pool.h"
#include "server/shard.h"

namespace erda::sim {

class PortsTest : public testing::Test {
 protected:
  static constexpr size_t kPorts = 2;

  explicit PortsTest(bool windows = false, bool nic_writes = false);
  void SetUp() override { Serve({}); }
  void Serve(const std::array<format::FlushMethod, kPorts>& flush_methods);

  // A client on that port, with a fabric of its own name.
  std::unique_ptr<client::Engine> MakeClient(const std::string& name, size_t port, PutPath path = PutPath::kReserve,
                                             uint32_t user = 0);
  // The server takes who has asked.
  void Admit();
  // Everybody does what there is to do until it is done; false if that never comes.
  bool RunUntil(const std::vector<client::Engine*>& clients, const std::function<bool()>& done);

  // The value, or the name of the code.
  std::string Get(client::Engine& client, const std::string& key);
  Code Put(client::Engine& client, const std::string& key, const std::string& value);

  [[nodiscard]] uint64_t Count(format::Counter counter) const { return shard_->counters().Get(counter); }
  // At how many moments clients have posted: each is one doorbell, and begins a round trip.
  [[nodiscard]] size_t Doorbells() const { return doorbells_.size(); }

  // Of the shard; to be changed before Serve. Its clock is the simulated one.
  server::ShardOptions shard_options_;
  // Taken by Serve instead of "dram:", if there is one.
  std::unique_ptr<nvm::Pool> medium_;
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
