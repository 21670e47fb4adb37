// The server as users see it. Opens the pool, makes the shards, and gives each a thread. One more thread for each
// address admits clients.
#include "erda/server.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <thread>

#include "base/birthplace.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/option_bounds.h"
#include "fabric/fabric.h"
#include "server/flush.h"
#include "server/pool/syncer.h"
#include "server/sessions/gate.h"
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

// Checks the options that Reload can change, too. of: ServerOptions or ServerLimits.
template <class Options>
void CheckLimits(const Options& of, Bounds* bounds) {
  bounds->Check(kServerBounds.clients_per_token, of.clients_per_token);
  bounds->Check(kServerBounds.requests_per_second, of.requests_per_second);
  bounds->Check(kServerBounds.connects_per_second, of.connects_per_second);
}

Status CheckOptions(const ServerOptions& options) {
  if (options.listen.empty()) return {Code::kInvalidArgument, "a server needs an address to listen on"};
  Bounds bounds;
  bounds.Check(kServerBounds.pool_size, options.pool_size);
  bounds.Check(kServerBounds.shards, options.shards);
  bounds.Check(kServerBounds.region_size, options.region_size);
  bounds.Check(kServerBounds.segment_size, options.segment_size);
  bounds.Check(kServerBounds.index_entries, options.index_entries);
  bounds.Check(kServerBounds.grow_to, options.grow_to);
  bounds.Check(kServerBounds.max_clients, options.max_clients);
  bounds.Check(kServerBounds.slots_per_client, options.slots_per_client);
  bounds.Check(kServerBounds.slot_bytes, options.slot_bytes);
  if (options.slot_bytes % 64 != 0) bounds.Refuse(kServerBounds.slot_bytes, std::to_string(options.slot_bytes));
  bounds.Check(kServerBounds.reservations_per_client, options.reservations_per_client);
  CheckLimits(options, &bounds);
  bounds.Check(kServerBounds.shm_access, static_cast<uint8_t>(options.shm_access));
  bounds.Check(kServerBounds.pool_writes, static_cast<uint8_t>(options.pool_writes));
  bounds.Check(kServerBounds.staging_bytes, options.staging_bytes);
  bounds.Check(kServerBounds.flush, static_cast<uint8_t>(options.flush));
  bounds.Check(kServerBounds.sync, options.sync.count());
  bounds.Check(kServerBounds.scrub_rate, options.scrub_rate);
  bounds.Check(kServerBounds.polling, static_cast<uint8_t>(options.polling));
  bounds.Check(kServerBounds.spin, options.spin.count());
  bounds.Check(kServerBounds.nvm_write_latency, options.nvm_write_latency.count());
  return bounds.status();
}

// The server in whose callback this thread is, or null.
thread_local const void* telling = nullptr;

class Telling {
 public:
  explicit Telling(const void* server) : before_(std::exchange(telling, server)) {}
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;
  ~Telling() { telling = before_; }

 private:
  const void* const before_;
};

constexpr const char* kForked =
    "this server was opened before a fork, and belongs to the parent process: end the child by exec or _exit";
constexpr const char* kInCallback =
    "a callback of this server must not start, reload, stop or destroy it, which would wait for the callback's end: "
    "leave that to another thread";

// How long a stop waits for clients that are in the middle of a Write.
constexpr std::chrono::seconds kPatience{1};

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options) : options_(std::move(options)) {
    Mark(options_.on_event);
    Mark(options_.on_damage);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { (void)StopOrNoMemory(); }

  // Returns the reason why the caller must neither start nor stop nor destroy the server, or null if the caller may.
  [[nodiscard]] const char* Misuse() const {
    if (birthplace_.forked()) return kForked;
    return telling == this ? kInCallback : nullptr;
  }
  [[nodiscard]] bool forked() const { return birthplace_.forked(); }

  Status Open() {
    if (auto status = CheckOptions(options_); !status.ok()) return status;
    if (!options_.token_file.empty()) {
      auto gate = server::Gate::Open(options_.token_file, SteadyClock::Instance());
      if (!gate.ok()) return gate.status();
      gate_ = *std::move(gate);
    }
    // Comes first, so that an impossible address leaves no new pool. A client that asks to connect waits until Start.
    for (const std::string& address : options_.listen) {
      auto port = PortOf(address);
      if (!port.ok()) return port.status();
      auto listener = fabrics_[*port]->Listen(address);
      if (!listener.ok()) return listener.status();
      if (auto status = (*listener)->LetAsk(fabric::Askers{static_cast<uint8_t>(options_.shm_access)}); !status.ok()) {
        return status;
      }
      addresses_.push_back((*listener)->address());
      doormen_.push_back(std::make_unique<Doorman>(*std::move(listener), *port, shards_, gate_.get(),
                                                   options_.connects_per_second, options_.on_event));
    }
    if (auto status = OpenForReaders(); !status.ok()) return status;
    const auto writers =
        options_.pool_writes == PoolWrites::kNobody ? SharedMemory::Writers::kOwner : SharedMemory::Writers::kPeers;
    const nvm::PoolOptions pool_options{options_.pool, options_.pool_size, options_.nvm_write_latency, writers};
    const format::GeometryWish wish{options_.pool_size,    options_.shards,        options_.region_size,
                                    options_.segment_size, options_.index_entries, 0,
                                    options_.grow_to};
    auto pool = FormattedPool::Open(pool_options, wish);
    if (!pool.ok()) return pool.status();
    pool_ = *std::move(pool);
    if (auto status = RegisterPool(); !status.ok()) return status;
    if (auto status = MakeShards(); !status.ok()) return status;
    return TakeUpShards();
  }

  Status Start() {
    if (state_ != State::kOpen) return {Code::kInvalidArgument, "a server starts once"};
    Status status = pool_->MarkOpen();
    if (!status.ok()) return status;
    state_ = State::kServing;
    for (auto& shard : shards_) {
      if (status.ok()) status = shard->Start();
    }
    for (auto& doorman : doormen_) {
      if (status.ok()) status = doorman->Start();
    }
    if (status.ok()) status = StartSyncer();
    if (!status.ok()) (void)Stop();
    return status;
  }

  Status Reload(const ServerLimits& limits) try {
    if (state_ == State::kStopped) return {Code::kInvalidArgument, "a stopped server has no limits to change"};
    Bounds bounds;
    CheckLimits(limits, &bounds);
    if (!bounds.status().ok()) return bounds.status();
    if (gate_ == nullptr && !limits.token_file.empty()) {
      return {Code::kInvalidArgument,
              "token_file: a server that was opened without one cannot ask for tokens before its next start"};
    }
    if (gate_ != nullptr) {
      const std::string& path = limits.token_file.empty() ? options_.token_file : limits.token_file;
      if (auto status = gate_->Reload(path); !status.ok()) return status;
      options_.token_file = path;
    }
    for (const auto& doorman : doormen_) doorman->SetLimit(limits.connects_per_second);
    for (const auto& thread : shards_) {
      thread->shard().SetLimits(limits.clients_per_token, limits.requests_per_second);
      if (gate_ != nullptr) thread->TokensChanged();
    }
    return {};
  } catch (const std::bad_alloc&) {
    return Status(Code::kResourceExhausted);
  }

  // Without memory the server has not stopped, or has not closed the pool cleanly. Another call goes on.
  Status StopOrNoMemory() try { return Stop(); } catch (const std::bad_alloc&) {
    return Status(Code::kResourceExhausted);
  }
  Status StartOrNoMemory() try { return Start(); } catch (const std::bad_alloc&) {
    (void)StopOrNoMemory();
    return Status(Code::kResourceExhausted);
  }

  Status Stop() {
    Status status;
    if (state_ == State::kServing) {
      for (auto& doorman : doormen_) doorman->Stop();
      for (auto& shard : shards_) shard->Stop();
      EndSessions();
      for (auto& shard : shards_) shard->Close();
      status = MarkClosed();
    }
    state_ = State::kStopped;
    doormen_.clear();  // until then nobody else can listen there
    return status;
  }

  Status StartSyncer() {
    if (options_.sync.count() == 0 || pool_->pool().durability() != nvm::Durability::kProcessSafe) return {};
    const auto changes = [this] {
      uint64_t bytes = 0;
      for (const auto& thread : shards_) {
        bytes += thread->shard().counters().Get(Counter::kNvmBytes);
        bytes += thread->shard().counters().Get(Counter::kCleanNvmBytes);
      }
      return bytes;
    };
    syncer_.emplace(*pool_, options_.sync, shards_.front()->shard().counters(), changes, options_.on_event);
    return syncer_->Start(recovery_.has_value());
  }

  Status MarkClosed() {
    if (syncer_) syncer_->Stop();
    Status status = syncer_ && syncer_->failed() ? Status(Code::kUnavailable, "a sync of the pool failed before")
                                                 : pool_->MarkClosed();
    if (status.ok()) return status;
    const bool marked = pool_->MarkUnvouched().ok();
    return {status.code(), "pool " + options_.pool + " is not marked as closed cleanly: " +
                               std::string(status.message()) + ". Acknowledged puts may be lost; " +
                               (marked ? "the next start verifies it in full"
                                       : "the disk does not take the mark that has the next start verify it in full. "
                                         "Restart the machine before the server: then it does")};
  }

  // Clients that are in the middle of a Write end it soon, unless they are stopped.
  void EndSessions() {
    const Nanoseconds begin = SteadyClock::Instance().Now();
    for (;;) {
      bool ended = true;
      for (const auto& thread : shards_) ended &= thread->shard().EndSessions();
      if (ended || SteadyClock::Instance().Now() - begin >= kPatience) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  [[nodiscard]] const std::vector<std::string>& Addresses() const { return addresses_; }

  [[nodiscard]] ServerStats Stats() const {
    ServerStats stats;
    stats.shards = static_cast<uint32_t>(shards_.size());
    for (const auto& thread : shards_) {
      const auto& counters = thread->shard().counters();
#define ERDA_ADD(field, counter) stats.field += counters.Get(Counter::counter);
      ERDA_SUMMED_STATISTICS(ERDA_ADD)
#undef ERDA_ADD
    }
    stats.descriptors = CountDescriptors();
    stats.puts = stats.puts_inline + stats.puts_reserved + stats.puts_delegated;
    return stats;
  }

  [[nodiscard]] Activity WhatWasDone() const {
    Activity activity;
    for (const auto& thread : shards_) thread->shard().control().AddActivity(&activity);
    return activity;
  }

  [[nodiscard]] const std::vector<ServerFabric>& Fabrics() const { return fabric_infos_; }
  [[nodiscard]] const std::optional<RecoveryReport>& Recovery() const { return recovery_; }

  [[nodiscard]] uint64_t GrowthLimit() const { return format::GrowthLimit(pool_->geometry()); }
  [[nodiscard]] std::string Durability() const { return format::DurabilityName(pool_->pool().durability()); }

 private:
  enum class State { kOpen, kServing, kStopped };

  // Wraps a callback so that `telling` names this server while the callback runs.
  void Mark(std::function<void(std::string_view)>& callback) {
    if (!callback) return;
    callback = [this, told = std::move(callback)](std::string_view what) {
      const Telling marked(this);
      told(what);
    };
  }

  // Returns the number of the fabric for an address. All addresses of a device share one fabric, so that the pool is
  // registered there once. All addresses of shm share one, too.
  Result<size_t> PortOf(const std::string& address) {
    auto opened = fabric::OpenFabric(address, fabric::Role::kListen);
    if (!opened.ok()) return opened.status();
    const auto same = std::find_if(fabrics_.begin(), fabrics_.end(), [&](const auto& fabric) {
      return fabric->scheme() == (*opened)->scheme() &&
             fabric->capabilities().device == (*opened)->capabilities().device;
    });
    const auto port = static_cast<size_t>(same - fabrics_.begin());
    if (same == fabrics_.end()) fabrics_.push_back(*std::move(opened));
    return port;
  }

  // Opens the fabrics for readers, which come after the fabrics with addresses, for those of them that need one.
  // Without tokens no client is limited to reading.
  Status OpenForReaders() {
    for_readers_.resize(fabrics_.size());
    if (options_.token_file.empty()) return {};
    for (size_t i = 0; i < for_readers_.size(); ++i) {
      auto fabric = fabrics_[i]->ForReaders();
      if (!fabric.ok()) return fabric.status();
      if (*fabric == nullptr) continue;
      for_readers_[i] = fabrics_.size();
      fabrics_.push_back(*std::move(fabric));
    }
    return {};
  }

  Status RegisterPool() {
    for (const auto& fabric : fabrics_) {
      const bool is_for_readers = pool_regions_.size() >= for_readers_.size();
      const Nanoseconds begin = SteadyClock::Instance().Now();
      auto regions = server::PoolRegions::Register(*fabric, pool_->pool(),
                                                   is_for_readers ? PoolWrites::kNobody : options_.pool_writes);
      if (!regions.ok()) return regions.status();
      pool_regions_.push_back(*std::move(regions));
      flush_methods_.push_back(server::ChooseFlush(options_.flush, pool_->pool().durability(), fabric->capabilities()));
      if (is_for_readers) continue;
      fabric_infos_.push_back({std::string(fabric->scheme()), fabric->capabilities().device,
                               format::FlushMethodName(flush_methods_.back()), SteadyClock::Instance().Now() - begin});
    }
    return {};
  }

  Status MakeShards() {
    server::ShardOptions options;
    options.max_clients = options_.max_clients;
    options.slots_per_client = options_.slots_per_client;
    options.slot_bytes = options_.slot_bytes;
    options.reservations_per_client = options_.reservations_per_client;
    options.clients_per_token = options_.clients_per_token;
    options.requests_per_second = options_.requests_per_second;
    options.pool_writes = options_.pool_writes;
    options.staging_bytes = options_.staging_bytes;
    options.server_id = RandomId();
    time_.emplace(ServerTime::From(SteadyClock::Instance(), ServerTime::WallMicros(), pool_->time(),
                                   server::ExpiryClock::kNoteAhead * 1000));
    options.time = &*time_;
    for (uint32_t number = 0; number < pool_->geometry().shards; ++number) {
      std::vector<std::unique_ptr<fabric::CompletionQueue>> queues;
      for (const auto& fabric : fabrics_) {
        auto queue = fabric->CreateQueue();
        if (!queue.ok()) return queue.status();
        queues.push_back(*std::move(queue));
      }
      auto thread = std::make_unique<ShardThread>(std::move(queues), options_.polling, options_.spin,
                                                  options_.scrub_rate / pool_->geometry().shards, gate_.get());
      std::vector<server::Port> ports;
      for (size_t i = 0; i < fabrics_.size(); ++i) {
        ports.push_back({*fabrics_[i], pool_regions_[i], thread->queue(i), flush_methods_[i],
                         i < for_readers_.size() ? for_readers_[i] : std::nullopt});
      }
      auto shard = Shard::Create(*pool_, number, ports, options);
      if (!shard.ok()) return shard.status();
      if (options_.on_damage) (*shard)->data().OnDamage(options_.on_damage);
      (*shard)->OnEvent(options_.on_event);
      thread->set_shard(*std::move(shard));
      shards_.push_back(std::move(thread));
    }
    return {};
  }

  Status TakeUpShards() {
    if (auto status = RecoverShards(); !status.ok()) return status;
    for (const auto& thread : shards_) thread->shard().data().BeginCleaning();
    return {};
  }

  // Returns the callback for keys whose damage the server finds while it opens the pool.
  [[nodiscard]] std::function<void(std::string_view)> TellDamage() const {
    return options_.on_damage ? options_.on_damage : [](std::string_view /*key*/) {};
  }

  Status RecoverShards() {
    const Nanoseconds begin = SteadyClock::Instance().Now();
    for (const auto& thread : shards_) {
      if (auto status = thread->shard().data().TakeUp(); !status.ok()) return status;
    }
    if (!pool_->needs_recovery()) return {};
    recovery_.emplace();
    for (const auto& thread : shards_) {
      RecoveryReport report;
      if (!pool_->needs_verification()) {
        report = thread->shard().data().Repair();
      } else if (auto status = thread->shard().data().Verify(TellDamage(), &report); !status.ok()) {
        return status;
      }
      *recovery_ += report;
    }
    recovery_->time = SteadyClock::Instance().Now() - begin;
    shards_.front()->shard().control().CountRecovery(*recovery_);
    return {};
  }

  const Birthplace birthplace_;
  ServerOptions options_;
  std::unique_ptr<server::Gate> gate_;  // null if the server demands no token
  State state_ = State::kOpen;
  std::vector<std::shared_ptr<fabric::Fabric>> fabrics_;  // each shard has a port for each of them
  std::vector<std::optional<size_t>> for_readers_;        // for each with addresses: its port for readers
  std::unique_ptr<FormattedPool> pool_;
  std::optional<ServerTime> time_;
  // By port, too:
  std::vector<server::PoolRegions> pool_regions_;
  std::vector<format::FlushMethod> flush_methods_;
  std::vector<ServerFabric> fabric_infos_;
  std::vector<std::unique_ptr<ShardThread>> shards_;
  std::vector<std::unique_ptr<Doorman>> doormen_;
  std::optional<server::Syncer> syncer_;
  std::vector<std::string> addresses_;      // does not change after Open
  std::optional<RecoveryReport> recovery_;  // does not change after Open
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A forked child has none of the server's threads, and its mappings belong to the parent. So the object stays in memory
// there.
Server::~Server() {
  const char* misuse = impl_->Misuse();
  if (misuse == nullptr) return;
  if (impl_->forked()) {
    (void)impl_.release();
    return;
  }
  // The destructor would wait for its own callback, and it cannot return a status.
  std::fprintf(stderr, "erda: a Server is destroyed in a callback of it: %s\n", misuse);
  std::abort();
}

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options) try {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (!Birthplace::watched()) return Status(Code::kResourceExhausted, Birthplace::kUnwatched);
  if (auto status = impl->Open(); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

Status Server::Start() {
  if (const char* misuse = impl_->Misuse()) return {Code::kInvalidArgument, misuse};
  return impl_->StartOrNoMemory();
}
Status Server::Reload(const ServerLimits& limits) {
  if (const char* misuse = impl_->Misuse()) return {Code::kInvalidArgument, misuse};
  return impl_->Reload(limits);
}
Status Server::Stop() {
  if (const char* misuse = impl_->Misuse()) return {Code::kInvalidArgument, misuse};
  return impl_->StopOrNoMemory();
}
std::vector<std::string> Server::addresses() const { return impl_->Addresses(); }
ServerStats Server::stats() const { return impl_->Stats(); }
Activity Server::activity() const { return impl_->WhatWasDone(); }
std::vector<ServerFabric> Server::fabrics() const { return impl_->Fabrics(); }
std::optional<RecoveryReport> Server::recovery() const { return impl_->Recovery(); }
std::string Server::durability() const { return impl_->Durability(); }

uint64_t Server::growth_limit() const { return impl_->GrowthLimit(); }

}  // namespace erda
