// The server as users see it: opens the pool, makes the shards, and gives each a thread; one more thread admits
// clients.
#include "erda/server.h"

#include <new>
#include <random>

#include "fabric/fabric.h"
#include "server/shard.h"
#include "server/threads.h"

namespace erda {

using format::Counter;
using server::Doorman;
using server::FormattedPool;
using server::Shard;
using server::ShardThread;

namespace {

uint64_t RandomId() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

Status CheckOptions(const ServerOptions& options) {
  const auto outside = [](uint64_t n, uint64_t least, uint64_t most) { return n < least || n > most; };
  if (options.listen.empty()) return {Code::kInvalidArgument, "a server needs an address to listen on"};
  if (outside(options.slots_per_client, 1, format::kSlotsMax)) {
    return {Code::kInvalidArgument, "slots_per_client must be 1 to " + std::to_string(format::kSlotsMax)};
  }
  if (outside(options.slot_bytes, 2048, 65536) || options.slot_bytes % 64 != 0) {
    return {Code::kInvalidArgument, "slot_bytes must be 2048 to 65536, and a multiple of 64"};
  }
  if (outside(options.max_clients, 1, 65536)) return {Code::kInvalidArgument, "max_clients must be 1 to 65536"};
  if (outside(options.reservations_per_client, 1, 1 << 20)) {
    return {Code::kInvalidArgument, "reservations_per_client must be 1 to 1048576"};
  }
  if (options.spin.count() < 0 || options.nvm_write_latency.count() < 0) {
    return {Code::kInvalidArgument, "a duration cannot be negative"};
  }
  return {};
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options) : options_(std::move(options)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { (void)Stop(); }

  Status Open() {
    if (auto status = CheckOptions(options_); !status.ok()) return status;
    for (const std::string& address : options_.listen) {
      auto fabric = fabric::OpenFabric(address);
      if (!fabric.ok()) return fabric.status();
      if (fabric_ && fabric_->scheme() != (*fabric)->scheme()) {
        return {Code::kInvalidArgument, "one server cannot listen on two fabrics in this version: " + address};
      }
      if (!fabric_) fabric_ = *fabric;
    }
    // First of all, so that an address that cannot be leaves no pool behind. Who asks waits until Start.
    for (const std::string& address : options_.listen) {
      auto listener = fabric_->Listen(address);
      if (!listener.ok()) return listener.status();
      addresses_.push_back((*listener)->address());
      doormen_.push_back(std::make_unique<Doorman>(*std::move(listener), shards_));
    }
    const nvm::PoolOptions pool_options{options_.pool, options_.pool_size, options_.nvm_write_latency};
    const format::GeometryWish wish{options_.pool_size, options_.shards, options_.region_size, options_.segment_size,
                                    options_.index_entries};
    auto pool = FormattedPool::Open(pool_options, wish);
    if (!pool.ok()) return pool.status();
    pool_ = *std::move(pool);
    return MakeShards();
  }

  Status Start() {
    if (state_ != State::kOpen) return {Code::kInvalidArgument, "a server starts once"};
    pool_->MarkOpen();
    state_ = State::kServing;
    Status status;
    for (auto& shard : shards_) {
      if (status.ok()) status = shard->Start();
    }
    for (auto& doorman : doormen_) {
      if (status.ok()) status = doorman->Start();
    }
    if (!status.ok()) (void)Stop();
    return status;
  }

  Status Stop() {
    if (state_ == State::kServing) {
      for (auto& doorman : doormen_) doorman->Stop();
      for (auto& shard : shards_) shard->Stop();
      for (auto& shard : shards_) shard->Close();
      pool_->MarkClosed();
    }
    state_ = State::kStopped;
    doormen_.clear();  // nobody else can listen there before
    return {};
  }

  [[nodiscard]] const std::vector<std::string>& Addresses() const { return addresses_; }

  [[nodiscard]] ServerStats Stats() const {
    ServerStats stats;
    stats.shards = static_cast<uint32_t>(shards_.size());
    for (const auto& thread : shards_) {
      const auto& counters = thread->shard().counters();
      stats.puts_inline += counters.Get(Counter::kPutsInline);
      stats.puts_reserved += counters.Get(Counter::kPutsReserved);
      stats.commits += counters.Get(Counter::kCommits);
      stats.deletes += counters.Get(Counter::kDeletes);
      stats.refused += counters.Get(Counter::kRefused);
      stats.violations += counters.Get(Counter::kViolations);
      stats.settled += counters.Get(Counter::kSettled);
      stats.taken_back += counters.Get(Counter::kTakenBack);
      stats.nvm_bytes_written += counters.Get(Counter::kNvmBytes);
      stats.clients += counters.Get(Counter::kClients);
      stats.keys += counters.Get(Counter::kKeys);
      stats.index_slots += counters.Get(Counter::kIndexSlots);
      stats.log_bytes_used += counters.Get(Counter::kLogBytesUsed);
      stats.log_bytes_total += counters.Get(Counter::kLogBytesTotal);
      stats.in_flight += counters.Get(Counter::kInFlight);
    }
    stats.puts = stats.puts_inline + stats.puts_reserved;
    return stats;
  }

  [[nodiscard]] std::string Durability() const { return format::DurabilityName(pool_->pool().durability()); }

 private:
  enum class State { kOpen, kServing, kStopped };

  Status MakeShards() {
    auto regions = server::PoolRegions::Register(*fabric_, pool_->pool());
    if (!regions.ok()) return regions.status();
    pool_regions_ = *std::move(regions);
    server::ShardOptions options;
    options.max_clients = options_.max_clients;
    options.slots_per_client = options_.slots_per_client;
    options.slot_bytes = options_.slot_bytes;
    options.reservations_per_client = options_.reservations_per_client;
    options.server_id = RandomId();
    // A medium that loses what is not flushed needs the shard to flush it; on the others a placed value is as safe as
    // it can be (docs/guarantees.md).
    options.flush_method = pool_->pool().durability() == nvm::Durability::kPowerSafe ? format::FlushMethod::kServerFlush
                                                                                     : format::FlushMethod::kNone;
    for (uint32_t number = 0; number < pool_->geometry().shards; ++number) {
      auto queue = fabric_->CreateQueue();
      if (!queue.ok()) return queue.status();
      auto thread = std::make_unique<ShardThread>(*std::move(queue), options_.spin);
      auto shard = Shard::Create(*pool_, number, *fabric_, pool_regions_, thread->queue(), options);
      if (!shard.ok()) return shard.status();
      thread->set_shard(*std::move(shard));
      shards_.push_back(std::move(thread));
    }
    return {};
  }

  ServerOptions options_;
  State state_ = State::kOpen;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<FormattedPool> pool_;
  server::PoolRegions pool_regions_;
  std::vector<std::unique_ptr<ShardThread>> shards_;
  std::vector<std::unique_ptr<Doorman>> doormen_;
  std::vector<std::string> addresses_;  // does not change after Open
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options) try {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto status = impl->Open(); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted, "no memory to open the pool");
}

Status Server::Start() { return impl_->Start(); }
Status Server::Stop() { return impl_->Stop(); }
std::vector<std::string> Server::addresses() const { return impl_->Addresses(); }
ServerStats Server::stats() const { return impl_->Stats(); }
std::string Server::durability() const { return impl_->Durability(); }

}  // namespace erda
