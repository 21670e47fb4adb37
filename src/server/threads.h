// The threads of a server: two for each shard, one for each address that it listens on. They own the loop and the
// clock; what happens in a step is the shard's business.
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
#include "server/gate.h"
#include "server/rate.h"
#include "server/shard.h"

namespace erda::server {

struct Newcomer {
  std::unique_ptr<fabric::Incoming> incoming;
  format::HelloRequest hello{};
  size_t port = 0;  // of the shards
  Admission admission{};
};

// A shard, its queues, its thread and its cleaner's, and the clients that wait to be admitted by it.
class ShardThread {
 public:
  // queues: one for each port. spin: how long it looks for work before it sleeps, if it is adaptive.
  // scrub_rate: bytes that its cleaner verifies in a second, beside its work; 0: none. gate: whose tokens its clients
  // have; none if no token is demanded.
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
  // REQUIRES: stopped.
  void Close() { shard_->Close(); }
  // From any thread.
  void Admit(Newcomer newcomer);
  // The gate has other tokens: clients of those that are gone are ended. From any thread.
  void TokensChanged() { Tell(); }

 private:
  void Run();
  // woke: it slept since the last call.
  void TellAwaitedTime(bool woke);
  void Clean();
  size_t AdmitNewcomers();
  void Tell();
  void Wake() { queues_.front()->Wake(); }  // a Wake of any is enough for WaitAny

  const std::vector<std::unique_ptr<fabric::CompletionQueue>> queues_;
  const Polling polling_;
  const std::chrono::nanoseconds spin_;
  const uint64_t scrub_rate_;
  const Gate* const gate_;
  EventFd cleaner_event_;
  std::unique_ptr<Shard> shard_;
  std::optional<Nanoseconds> awaited_since_;  // as far as the shard was told
  uint32_t awaiting_polls_ = 0;
  std::thread thread_;
  std::thread cleaner_thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> was_told_{false};
  std::mutex mutex_;  // connecting is not the hot path
  std::deque<Newcomer> newcomers_;
};

// A listening address and the thread that hears it: checks who asks, and sends them to their shard.
class Doorman {
 public:
  // port: the shards' port for those who ask here. gate: none lets everybody in. per_second: who may come in with one
  // token; 0: no limit. tell: of those who are refused.
  Doorman(std::unique_ptr<fabric::Listener> listener, size_t port, std::vector<std::unique_ptr<ShardThread>>& shards,
          Gate* gate, uint32_t per_second, TellEvent tell);
  Doorman(const Doorman&) = delete;
  Doorman& operator=(const Doorman&) = delete;
  ~Doorman();

  [[nodiscard]] const std::string& address() const { return listener_->address(); }
  Status Start();
  void Stop();
  // From the next client on. From any thread: relaxed, as Shard::SetLimits.
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
  std::map<TokenId, Rate> rates_;  // of the tokens that count
  const TellEvent tell_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
};

}  // namespace erda::server
