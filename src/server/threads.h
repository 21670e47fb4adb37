// The threads of a server: two for each shard, and one for each address that it listens on. They own the loop and the
// clock. The shard decides what a step does.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/event_fd.h"
#include "erda/polling.h"
#include "fabric/fabric.h"
#include "server/sessions/gate.h"
#include "server/sessions/rate.h"
#include "server/shard.h"

namespace erda::server {

struct Newcomer {
  std::unique_ptr<fabric::Incoming> incoming;
  format::HelloRequest hello{};
  size_t port = 0;  // the number of the shards' port
  Admission admission{};
};

// A shard with its queues, its thread and its cleaner's thread, and the clients that the shard has still to admit.
class ShardThread {
 public:
  // queues: one for each port. spin: how long the shard looks for work before it sleeps, if `polling` is adaptive.
  // scrub_rate: how many bytes the cleaner scrubs in a second; 0: it does not scrub. gate: null if the server demands
  // no token.
  ShardThread(std::vector<std::unique_ptr<fabric::CompletionQueue>> queues, Polling polling,
              std::chrono::nanoseconds spin, uint64_t scrub_rate, const Gate* gate);
  ShardThread(const ShardThread&) = delete;
  ShardThread& operator=(const ShardThread&) = delete;
  ~ShardThread();

  fabric::CompletionQueue& queue(size_t port) { return *queues_[port]; }
  void set_shard(std::unique_ptr<Shard> shard) { shard_ = std::move(shard); }
  [[nodiscard]] Shard& shard() { return *shard_; }
  [[nodiscard]] const Shard& shard() const { return *shard_; }

  Status Start();
  void Stop();
  // REQUIRES: the threads are stopped.
  void Close() { shard_->Close(); }
  // Any thread: hands the shard a client to admit.
  void Admit(Newcomer newcomer);
  // Any thread: the tokens of the gate have changed. The shard ends the clients whose token is gone.
  void TokensChanged() { Tell(); }
  // Any thread: has the shard look for work.
  void Wake() { queues_.front()->Wake(); }  // a Wake of any queue ends WaitAny

 private:
  void Run();
  // Tells the shard for how long requests await writers. woke: the thread slept since the last call.
  void TellAwaitedTime(bool woke);
  void Clean();
  size_t AdmitNewcomers();
  void AdmitMirrors();
  void Tell();

  const std::vector<std::unique_ptr<fabric::CompletionQueue>> queues_;
  const Polling polling_;
  const std::chrono::nanoseconds spin_;
  const uint64_t scrub_rate_;
  const Gate* const gate_;
  EventFd cleaner_event_;
  std::unique_ptr<Shard> shard_;
  std::optional<Nanoseconds> awaited_since_;  // the time up to which the shard was told
  uint32_t awaiting_polls_ = 0;
  std::thread thread_;
  std::thread cleaner_thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> was_told_{false};
  std::mutex mutex_;  // a lock is cheap enough, since clients connect rarely
  std::deque<Newcomer> newcomers_;
};

// A listening address and its thread. Checks each client that asks to connect, and sends it to its shard.
class Doorman {
 public:
  // `port` is the shards' port for clients of this address. A null `gate` lets every client in. `per_second` clients
  // may connect in a second with one token; 0: no limit. `tell` hears of refused clients.
  Doorman(std::unique_ptr<fabric::Listener> listener, size_t port, std::vector<std::unique_ptr<ShardThread>>& shards,
          Gate* gate, uint32_t per_second, TellEvent tell);
  Doorman(const Doorman&) = delete;
  Doorman& operator=(const Doorman&) = delete;
  ~Doorman();

  [[nodiscard]] const std::string& address() const { return listener_->address(); }
  Status Start();
  void Stop();
  // Any thread: sets the limit, from the next client on. Relaxed, as Shard::SetLimits.
  void SetLimit(uint32_t per_second) { per_second_.store(per_second, std::memory_order_relaxed); }

 private:
  void Run();
  void Receive(std::unique_ptr<fabric::Incoming> incoming);
  void LookAtTokens();
  [[nodiscard]] bool IsTooFast(TokenId token, uint32_t per_second);

  std::unique_ptr<fabric::Listener> listener_;
  const size_t port_;
  std::vector<std::unique_ptr<ShardThread>>& shards_;
  Gate* const gate_;
  std::atomic<uint32_t> per_second_;
  std::map<TokenId, Rate> rates_;  // for each token that counts
  const TellEvent tell_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
};

}  // namespace erda::server
