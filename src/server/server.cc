// The server as users see it. Opens the pool, makes the shards, and gives each a thread. One more thread for each
// address admits clients.
#include "erda/server.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/birthplace.h"
#include "base/clock.h"
#include "server/callback_guard.h"
#include "server/check_options.h"
#include "server/pool/formatted_pool.h"
#include "server/pool/pool_opening.h"
#include "server/pool/syncer.h"
#include "server/server_fabrics.h"
#include "server/server_shards.h"
#include "server/sessions/gate.h"
#include "server/threads.h"

namespace erda {

using server::Doorman;
using server::FormattedPool;

class Server::Impl {
 public:
  explicit Impl(ServerOptions options) : options_(std::move(options)) {
    options_.on_event = guard_.Wrap(std::move(options_.on_event));
    options_.on_damage = guard_.Wrap(std::move(options_.on_damage));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { (void)StopOrNoMemory(); }

  [[nodiscard]] const server::CallbackGuard& guard() const { return guard_; }

  Status Open() {
    if (auto status = server::CheckOptions(options_); !status.ok()) return status;
    if (!options_.token_file.empty()) {
      auto gate = server::Gate::Open(options_.token_file, SteadyClock::Instance());
      if (!gate.ok()) return gate.status();
      gate_ = *std::move(gate);
    }
    // Comes first, so that an impossible address leaves no new pool. A client that asks to connect waits until Start.
    for (const std::string& address : options_.listen) {
      if (auto status = Listen(address); !status.ok()) return status;
    }
    if (auto status = fabrics_.OpenForReaders(gate_ != nullptr); !status.ok()) return status;
    if (auto status = OpenPool(); !status.ok()) return status;
    if (auto status = shards_.Make(*pool_, fabrics_, options_, gate_.get()); !status.ok()) return status;
    // The shards write from now on, and the journal alone may have that. So the file must not say any more that it has
    // all.
    if (journaled_ != nullptr) {
      if (auto status = pool_->MarkOpen(); !status.ok()) return status;
    }
    shards_.first_counters().Set(format::Counter::kJournalInterval,
                                 static_cast<uint64_t>(options_.journal_interval.count()));
    if (auto status = shards_.TakeUp(*pool_, options_.on_damage, &recovery_); !status.ok()) return status;
    // Clients see what recovery has found and built. A power cut must not undo it then.
    Status status = pool_->pool().AwaitHeld();
    taken_up_ = status.ok();
    return status;
  }

  Status Start() {
    if (state_ != State::kOpen) return {Code::kInvalidArgument, "a server starts once"};
    Status status = pool_->MarkOpen();
    if (!status.ok()) return status;
    state_ = State::kServing;
    status = shards_.Start();
    for (auto& doorman : doormen_) {
      if (status.ok()) status = doorman->Start();
    }
    if (status.ok()) status = StartSyncer();
    if (!status.ok()) (void)Stop();
    return status;
  }

  Status Reload(const ServerLimits& limits) try {
    if (state_ == State::kStopped) return {Code::kInvalidArgument, "a stopped server has no limits to change"};
    if (auto status = server::CheckLimits(limits); !status.ok()) return status;
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
    shards_.SetLimits(limits);
    if (gate_ != nullptr) shards_.TokensChanged();
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

  [[nodiscard]] const server::ServerShards& shards() const { return shards_; }
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] const std::vector<ServerFabric>& fabrics() const { return fabrics_.infos(); }
  [[nodiscard]] const std::optional<RecoveryReport>& recovery() const { return recovery_; }
  [[nodiscard]] uint64_t GrowthLimit() const { return format::GrowthLimit(pool_->geometry()); }
  [[nodiscard]] Status Health() const { return journaled_ == nullptr ? Status() : journaled_->failure(); }
  [[nodiscard]] std::string Durability() const { return format::DurabilityName(pool_->pool().vouched()); }

 private:
  enum class State { kOpen, kServing, kStopped };

  Status Listen(const std::string& address) {
    auto listening = fabrics_.Listen(address);
    if (!listening.ok()) return listening.status();
    auto listener = std::move(listening->listener);
    if (auto status = listener->LetAsk(fabric::Askers{static_cast<uint8_t>(options_.shm_access)}); !status.ok()) {
      return status;
    }
    addresses_.push_back(listener->address());
    doormen_.push_back(std::make_unique<Doorman>(std::move(listener), listening->port, shards_.threads(), gate_.get(),
                                                 options_.connects_per_second, options_.on_event));
    return {};
  }

  Status OpenPool() {
    const auto failed = [tell = options_.on_event](const Status& status) {
      if (tell) {
        tell("the journal has failed: " + std::string(status.message()) +
             ". Gets go on. No put is acknowledged until a new server starts");
      }
    };
    const auto archive_event = [tell = options_.on_event](const std::string& line) {
      if (tell) tell(line);
    };
    auto opened = server::OpenPoolOf(options_, failed, archive_event);
    if (!opened.ok()) return opened.status();
    pool_ = std::move(opened->pool);
    journaled_ = opened->journaled;
    return fabrics_.RegisterPool(pool_->pool(), options_.pool_writes, options_.flush);
  }

  Status StartSyncer() {
    if (options_.sync.count() == 0 || pool_->pool().durability() != nvm::Durability::kProcessSafe) return {};
    const auto changes = [this] { return shards_.WrittenBytes(); };
    syncer_.emplace(*pool_, options_.sync, shards_.first_counters(), changes, options_.on_event);
    return syncer_->Start(recovery_.has_value());
  }

  Status Stop() {
    Status status;
    // A pool with a journal was marked by Open. If it never served, it is closed cleanly again.
    if (state_ == State::kServing || (state_ == State::kOpen && journaled_ != nullptr && taken_up_)) {
      for (auto& doorman : doormen_) doorman->Stop();
      shards_.Stop();
      shards_.EndSessions();
      shards_.Close();
      status = MarkClosed();
    }
    state_ = State::kStopped;
    doormen_.clear();  // until then nobody else can listen there
    return status;
  }

  Status MarkClosed() {
    if (syncer_) syncer_->Stop();
    Status status = syncer_ && syncer_->failed() ? Status(Code::kUnavailable, "a sync of the pool failed before")
                                                 : pool_->MarkClosed();
    if (status.ok()) return status;
    if (journaled_ != nullptr) {
      return {status.code(), "pool " + options_.pool +
                                 " is not marked as closed cleanly: " + std::string(status.message()) +
                                 ". The disk has all that was acknowledged, and the next start finds it there"};
    }
    const bool marked = pool_->MarkUnvouched().ok();
    return {status.code(), "pool " + options_.pool + " is not marked as closed cleanly: " +
                               std::string(status.message()) + ". Acknowledged puts may be lost; " +
                               (marked ? "the next start verifies it in full"
                                       : "the disk does not take the mark that has the next start verify it in full. "
                                         "Restart the machine before the server: then it does")};
  }

  const server::CallbackGuard guard_;
  ServerOptions options_;
  std::unique_ptr<server::Gate> gate_;  // null if the server demands no token
  State state_ = State::kOpen;
  bool taken_up_ = false;                        // by Open
  std::unique_ptr<FormattedPool> pool_;          // comes before fabrics_, so it outlives its registered memory
  journal::JournaledPool* journaled_ = nullptr;  // the pool of pool_, if it has a journal
  server::ServerFabrics fabrics_;
  server::ServerShards shards_;
  std::vector<std::unique_ptr<Doorman>> doormen_;
  std::optional<server::Syncer> syncer_;
  std::vector<std::string> addresses_;      // does not change after Open
  std::optional<RecoveryReport> recovery_;  // does not change after Open
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A forked child has none of the server's threads, and its mappings belong to the parent. So the object stays in memory
// there.
Server::~Server() {
  const char* misuse = impl_->guard().Misuse();
  if (misuse == nullptr) return;
  if (impl_->guard().forked()) {
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
  if (const char* misuse = impl_->guard().Misuse()) return {Code::kInvalidArgument, misuse};
  return impl_->StartOrNoMemory();
}
Status Server::Reload(const ServerLimits& limits) {
  if (const char* misuse = impl_->guard().Misuse()) return {Code::kInvalidArgument, misuse};
  return impl_->Reload(limits);
}
Status Server::Stop() {
  if (const char* misuse = impl_->guard().Misuse()) return {Code::kInvalidArgument, misuse};
  return impl_->StopOrNoMemory();
}
std::vector<std::string> Server::addresses() const { return impl_->addresses(); }
ServerStats Server::stats() const { return impl_->shards().Stats(); }
Activity Server::activity() const { return impl_->shards().WhatWasDone(); }
std::vector<ServerFabric> Server::fabrics() const { return impl_->fabrics(); }
std::optional<RecoveryReport> Server::recovery() const { return impl_->recovery(); }
std::string Server::durability() const { return impl_->Durability(); }
Status Server::health() const try { return impl_->Health(); } catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

uint64_t Server::growth_limit() const { return impl_->GrowthLimit(); }

}  // namespace erda
