// A mirror's machine, whose pool outlives the processes of the mirror, and a server that an operator has promoted.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "client/engine.h"
#include "fabric/sim/network.h"
#include "format/mirror_link.h"
#include "format/superblock.h"
#include "inspect/inspection.h"
#include "mirror/mirror.h"
#include "server/crash_pool.h"
#include "server/pool/formatted_pool.h"
#include "server/sessions/gate.h"
#include "server/shard.h"

namespace erda::sim {

class MirrorMachine {
 public:
  // of_primary: the superblock of the primary's pool. The mirror's pool begins with other bytes.
  // Uses the network's clock, and rings of the least size.
  MirrorMachine(fabric::SimNetwork& network, const format::Superblock& of_primary, mirror::MirrorOptions options)
      : network_(network), options_(std::move(options)), superblock_(of_primary) {
    options_.clock = &network;
    options_.ring_bytes = format::kMirrorRingBytesMin;
    superblock_.generation = 1;
    superblock_.clean = 0;
    superblock_.boot = format::kNoBoot;
    superblock_.crc = format::SuperblockCrc(superblock_);
    constexpr uint64_t kOtherBytes = 0xa5a5a5a5a5a5a5a5;
    server::CrashPool::Image image(superblock_.geometry.pool_size / sizeof(uint64_t), kOtherBytes);
    std::fill_n(image.begin(), format::kShardRecordsOffset / sizeof(uint64_t), 0);
    std::memcpy(image.data(), &superblock_, sizeof(superblock_));
    pool_ = std::make_unique<server::CrashPool>(std::move(image));
  }

  // A process of the mirror starts.
  void Start() {
    fabric_ = network_.CreateFabric(node());
    pool_->before_fence = before_fence;
    process_ = *mirror::Mirror::Make(
        *fabric_, *pool_, superblock_, mark_, [this](const auto& next) { return Store(next); }, options_);
  }
  // The process dies, and the machine stays up.
  void Kill() {
    network_.KillNode(node());
    process_.reset();
    fabric_.reset();
    pool_->ProcessDies();
  }
  // The power is cut, and comes back.
  void CutPower(Random& random, double kept) {
    Kill();
    pool_ = std::make_unique<server::CrashPool>(pool_->AfterPowerCut(random, kept));
  }
  void Step() {
    if (process_ && !stuck) (void)process_->Poll();
  }

  [[nodiscard]] mirror::Mirror* process() { return process_.get(); }
  [[nodiscard]] mirror::Mirror::State state() const {
    return process_ ? process_->state() : mirror::Mirror::State::kApart;
  }
  [[nodiscard]] bool in_sync() const { return state() == mirror::Mirror::State::kInSync; }
  // Returns the mark in the superblock.
  [[nodiscard]] const mirror::Mark& mark() const { return mark_; }
  [[nodiscard]] server::CrashPool& pool() { return *pool_; }
  [[nodiscard]] uint64_t id() const { return options_.id; }

  // Its process does nothing.
  bool stuck = false;
  // Called before each fence of the next process.
  std::function<void()> before_fence;
  // Tells for the next write of the superblock whether it fails.
  std::function<bool()> fails;

 private:
  [[nodiscard]] std::string node() const { return "mirror" + std::to_string(options_.id); }
  // Every second write that fails reaches the medium all the same.
  Status Store(const mirror::Mark& mark) {
    constexpr Nanoseconds kWriteTime = std::chrono::microseconds(20);
    network_.RunUntil(network_.Now() + kWriteTime);
    const bool failed = fails && fails();
    if (!failed || ++failures_ % 2 == 0) mark_ = mark;
    return failed ? Status(Code::kUnavailable, "the medium takes no superblock") : Status();
  }

  fabric::SimNetwork& network_;
  mirror::MirrorOptions options_;
  format::Superblock superblock_;
  mirror::Mark mark_;
  uint64_t failures_ = 0;  // Writes of the superblock.
  std::unique_ptr<server::CrashPool> pool_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<mirror::Mirror> process_;
};

// Gets the key, and returns the value or the name of the error. `step` goes on until the get has ended.
template <class Step>
std::string GetBy(client::Engine& engine, const std::string& key, Step&& step) {
  constexpr int kStepsMax = 200'000;
  std::optional<std::string> came;
  const Status began = engine.Get(key, [&](const Result<std::string_view>& value) {
    came = value.ok() ? std::string(*value) : CodeName(value.status().code());
  });
  if (!began.ok()) return began.ToString();
  for (int i = 0; i < kStepsMax && !came; ++i) step();
  return came.value_or("never");
}

// A server of the pool of a mirror, after a promotion, in another network.
class Promoted {
 public:
  explicit Promoted(server::CrashPool::Image image) {
    auto bytes = std::make_unique<server::CrashPool>(std::move(image));
    pool_ = *server::FormattedPool::Take(std::move(bytes), {"a mirror", 0}, {.shards = 0});
    regions_ = *server::PoolRegions::Register(*fabric_, pool_->pool());
    server::ShardOptions options;
    options.clock = &network_;
    for (uint32_t number = 0; number < pool_->geometry().shards; ++number) {
      queues_.push_back(*fabric_->CreateQueue());
      const server::Port port{*fabric_, regions_, *queues_.back(), format::FlushMethod::kServerFlush};
      shards_.push_back(*server::Shard::Create(*pool_, number, std::span(&port, 1), options));
    }
    LookForDamage("before the recovery");
    for (const auto& shard : shards_) {
      if (auto status = shard->data().TakeUp(); !status.ok()) damage_ += "; " + status.ToString();
    }
    for (const auto& shard : shards_) (void)shard->data().Repair();
    for (const auto& shard : shards_) shard->data().BeginCleaning();
    LookForDamage("after the recovery");
    listener_ = *fabric_->Listen(kAddress);
    client::EngineOptions of_client;
    of_client.timeout = std::chrono::hours(1);
    engine_ = *client::Engine::Create(network_.CreateFabric("client"), kAddress, of_client, network_);
  }

  // Returns the damage that erda-inspect's code finds. Empty: no damage.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  // Returns the value, or the name of the error.
  std::string Get(const std::string& key) {
    return GetBy(*engine_, key, [this] { Step(); });
  }

 private:
  static constexpr const char* kAddress = "sim:promoted";

  void LookForDamage(const std::string& when) {
    const auto report = inspect::InspectPool(pool_->pool().bytes(), {});
    if (!report.ok()) {
      damage_ += "; " + report.status().ToString();
    } else if (report->damage_count > 0) {
      damage_ += "; " + report->damage.front().what + ", " + when;
    }
  }
  void Step() {
    network_.Step();
    if (auto incoming = listener_->Poll()) {
      const auto guest = server::Greet(*incoming, nullptr, pool_->geometry().shards);
      if (guest) shards_[guest->hello.shard]->Admit(std::move(incoming), guest->hello, 0, guest->admission);
    }
    for (const auto& shard : shards_) (void)shard->Poll();
    engine_->Poll();
  }

  // Each object uses those before it.
  std::string damage_;
  fabric::SimNetwork network_{2};
  std::shared_ptr<fabric::Fabric> fabric_ = network_.CreateFabric("promoted");
  std::unique_ptr<server::FormattedPool> pool_;
  server::PoolRegions regions_;
  std::vector<std::unique_ptr<fabric::CompletionQueue>> queues_;
  std::vector<std::unique_ptr<server::Shard>> shards_;
  std::unique_ptr<fabric::Listener> listener_;
  std::unique_ptr<client::Engine> engine_;
};

}  // namespace erda::sim
