// The simulated server: what server.cc does with threads, one step at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/sim/network.h"
#include "server/shard.h"
#include "sim/cluster.h"

namespace erda::sim {

inline constexpr const char* kServerAddress = "sim:server";

class ServerProcess {
 public:
  // The pool file gets contents that depend on the plan alone.
  ServerProcess(fabric::SimNetwork& network, const Plan& plan, std::string pool_path);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  void Start();
  void Stop();  // cleanly
  [[nodiscard]] bool running() const { return listener_ != nullptr; }
  // Some of the work there is.
  void Step(Random& random);

  // The sum over all shards, since the first start.
  [[nodiscard]] uint64_t Count(format::Counter counter) const;
  // Why it could not do as told; empty if it could.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  struct ShardProcess {
    std::unique_ptr<fabric::CompletionQueue> queue;
    std::unique_ptr<server::Shard> shard;
  };

  void MakePool();
  void Require(const Status& status);
  void Admit(std::unique_ptr<fabric::Incoming> incoming);

  fabric::SimNetwork& network_;
  const Plan& plan_;
  const std::string pool_path_;
  std::string failure_;
  uint64_t starts_ = 0;
  std::array<uint64_t, static_cast<size_t>(format::Counter::kCount)> before_{};  // of the servers stopped so far

  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<server::FormattedPool> pool_;
  server::PoolRegions regions_;
  std::vector<ShardProcess> shards_;
  std::unique_ptr<fabric::Listener> listener_;
};

}  // namespace erda::sim
