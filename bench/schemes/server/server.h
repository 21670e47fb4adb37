// A server of a compared scheme: its pool, one shard, one thread that serves it, and one thread that accepts
// connections.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "bench/schemes/server/service.h"
#include "bench/schemes/server/storage.h"
#include "erda/polling.h"
#include "erda/server.h"
#include "fabric/fabric.h"

namespace erda::schemes {

struct ServerSettings {
  Scheme scheme = Scheme::kRedoLogging;
  PoolSettings pool;
  std::string listen;
  FlushChoice flush = FlushChoice::kAuto;
  uint32_t max_clients = 1024;
  uint32_t slot_bytes = 16384;
  Polling polling = Polling::kAdaptive;
  std::chrono::nanoseconds spin{std::chrono::microseconds(50)};
};

class Server {
 public:
  // Opens or creates the pool, takes the address, and serves from then on.
  static Result<std::unique_ptr<Server>> Start(const ServerSettings& settings);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { Stop(); }
  // Ends all sessions. The log is empty after that.
  void Stop();

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] format::Durability durability() const { return storage_->scheme_pool().pool().durability(); }
  [[nodiscard]] format::FlushMethod flush_method() const { return flush_method_; }
  [[nodiscard]] const RecoveryReport& recovery() const { return storage_->recovery(); }

 private:
  explicit Server(const ServerSettings& settings) : settings_(settings) {}
  Status Prepare();
  Status StartThreads();
  void Serve();
  void Listen();
  size_t AdmitNewcomers();

  const ServerSettings settings_;
  std::string address_;
  format::FlushMethod flush_method_ = format::FlushMethod::kNone;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<fabric::Listener> listener_;
  std::thread thread_;
  std::thread doorman_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_newcomers_{false};
  std::mutex mutex_;
  std::deque<std::unique_ptr<fabric::Incoming>> newcomers_;
};

}  // namespace erda::schemes
