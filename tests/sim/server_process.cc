#include "sim/server_process.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/bytes.h"

namespace erda::sim {

using format::Counter;

ServerProcess::ServerProcess(fabric::SimNetwork& network, const Plan& plan, std::string pool_path)
    : network_(network), plan_(plan), pool_path_(std::move(pool_path)) {
  MakePool();
}

ServerProcess::~ServerProcess() {
  if (running()) Stop();
  std::filesystem::remove(pool_path_);
}

void ServerProcess::Require(const Status& status) {
  if (!status.ok() && failure_.empty()) failure_ = "the server failed: " + status.ToString();
}

// As FormattedPool makes one, but for the uuid: a random one would be in every checksum, and no run the same twice.
void ServerProcess::MakePool() {
  format::GeometryWish wish{plan_.pool_size, plan_.shards, plan_.region_size, plan_.segment_size, plan_.index_entries};
  auto geometry = format::ChooseGeometry(wish);
  if (!geometry.ok()) return Require(geometry.status());
  format::Superblock superblock{};
  superblock.magic = format::kPoolMagic;
  superblock.format_version = format::kFormatVersion;
  superblock.geometry = *geometry;
  superblock.generation = 1;
  superblock.clean = 1;
  superblock.uuid.fill(static_cast<uint8_t>(plan_.seed));
  superblock.crc = format::SuperblockCrc(superblock);
  std::ofstream file(pool_path_, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&superblock), sizeof(superblock));
  file.close();
  std::filesystem::resize_file(pool_path_, plan_.pool_size);
}

void ServerProcess::Start() {
  auto pool = server::FormattedPool::Open({pool_path_, 0, Nanoseconds(0)}, {0, 0, 0, 0, 0});
  if (!pool.ok()) return Require(pool.status());
  pool_ = *std::move(pool);
  fabric_ = network_.CreateFabric("server");
  auto regions = server::PoolRegions::Register(*fabric_, pool_->pool());
  if (!regions.ok()) return Require(regions.status());
  regions_ = *std::move(regions);
  server::ShardOptions options;
  options.slot_bytes = 2048;
  options.reservations_per_client = plan_.reservations_per_client;
  options.flush_method = plan_.flush_method;
  options.server_id = ++starts_;
  for (uint32_t number = 0; number < pool_->geometry().shards; ++number) {
    auto queue = fabric_->CreateQueue();
    if (!queue.ok()) return Require(queue.status());
    auto shard = server::Shard::Create(*pool_, number, *fabric_, regions_, **queue, options);
    if (!shard.ok()) return Require(shard.status());
    shards_.push_back({*std::move(queue), *std::move(shard)});
  }
  auto listener = fabric_->Listen(kServerAddress);
  if (!listener.ok()) return Require(listener.status());
  pool_->MarkOpen();
  listener_ = *std::move(listener);
}

void ServerProcess::Stop() {
  listener_.reset();
  for (ShardProcess& process : shards_) process.shard->Close();
  if (pool_) pool_->MarkClosed();
  for (const ShardProcess& process : shards_) {
    for (size_t i = 0; i < before_.size(); ++i) before_[i] += process.shard->counters().Get(Counter(i));
  }
  for (const Counter now : {Counter::kClients, Counter::kKeys, Counter::kInFlight}) {
    before_[static_cast<size_t>(now)] = 0;
  }
  shards_.clear();
  regions_ = {};
  pool_.reset();
  fabric_.reset();
}

void ServerProcess::Step(Random& random) {
  if (!running()) return;
  if (random.Chance(0.2)) {
    if (auto incoming = listener_->Poll()) Admit(std::move(incoming));
  }
  ShardProcess& process = shards_[random.Uniform(shards_.size())];
  if (process.shard->Poll() == 0 && random.Chance(0.1)) process.shard->Tidy();
}

void ServerProcess::Admit(std::unique_ptr<fabric::Incoming> incoming) {
  const auto hello = LoadAs<format::HelloRequest>(incoming->peer_data());
  if (hello.shard < shards_.size()) shards_[hello.shard].shard->Admit(std::move(incoming), hello);
}

uint64_t ServerProcess::Count(Counter counter) const {
  uint64_t sum = before_[static_cast<size_t>(counter)];
  for (const ShardProcess& process : shards_) sum += process.shard->counters().Get(counter);
  return sum;
}

}  // namespace erda::sim
