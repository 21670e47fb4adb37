#include "bench/schemes/server/server.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/relax.h"
#include "server/flush.h"

namespace erda::schemes {

namespace {

constexpr std::chrono::hours kForever{1};
// Looks for work between two looks at the clock, as in an Erda shard.
constexpr uint32_t kLooksPerClock = 16;
// The longest sleep while a client may write an entry, which sends no message.
constexpr std::chrono::milliseconds kEntriesAwaited{1};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const ServerSettings& settings) {
  std::unique_ptr<Server> server(new Server(settings));
  if (auto status = server->Prepare(); !status.ok()) return status;
  if (auto status = server->StartThreads(); !status.ok()) return status;
  return server;
}

Status Server::Prepare() {
  if (settings_.slot_bytes < kSlotBytesMin || settings_.slot_bytes > kSlotBytesMax || settings_.slot_bytes % 64 != 0) {
    return {Code::kInvalidArgument, "slot_bytes must be 2048 to 65536, and a multiple of 64"};
  }
  auto fabric = fabric::OpenFabric(settings_.listen, fabric::Role::kListen);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  // First, so that an impossible address leaves no pool.
  auto listener = fabric_->Listen(settings_.listen);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  address_ = listener_->address();

  auto storage = Storage::Open(settings_.scheme, settings_.pool);
  if (!storage.ok()) return storage.status();
  storage_ = *std::move(storage);
  if (settings_.slot_bytes > storage_->scheme_pool().log_bytes() / 4) {
    storage_->scheme_pool().pool().RemoveIfCreated();
    return {Code::kInvalidArgument,
            "the log must have room for four slots of " + std::to_string(settings_.slot_bytes) + " bytes"};
  }
  flush_method_ = server::ChooseFlush(settings_.flush, durability(), fabric_->capabilities());
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  auto service = Service::Create(*storage_, *fabric_, *queue_,
                                 {settings_.scheme, settings_.max_clients, settings_.slot_bytes, flush_method_});
  if (!service.ok()) return service.status();
  service_ = *std::move(service);
  return {};
}

Status Server::StartThreads() try {
  thread_ = std::thread([this] { Serve(); });
  pthread_setname_np(thread_.native_handle(), "scheme-shard");
  doorman_ = std::thread([this] { Listen(); });
  pthread_setname_np(doorman_.native_handle(), "scheme-doorman");
  return {};
} catch (const std::system_error& error) {
  return {Code::kResourceExhausted, std::string("cannot start a thread: ") + error.what()};
}

void Server::Stop() {
  stop_.store(true, std::memory_order_release);  // Pairs with the acquire in Serve and in Listen.
  if (listener_) listener_->Wake();
  if (doorman_.joinable()) doorman_.join();
  if (queue_) queue_->Wake();
  if (thread_.joinable()) thread_.join();
  newcomers_.clear();  // Refuses them.
  if (service_) service_->Close();
  service_.reset();
  listener_.reset();
}

// Looks, spins and sleeps as an Erda shard does (ShardThread::Run).
void Server::Serve() {
  const bool never_sleeps = settings_.polling == Polling::kBusy;
  const Nanoseconds spin = settings_.polling == Polling::kSleep ? Nanoseconds(0) : settings_.spin;
  const bool sleeps_at_once = !never_sleeps && spin.count() == 0;
  Relax relax;
  bool busy = true;
  Nanoseconds idle_since{0};
  uint32_t looks = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    if (service_->Poll() + AdmitNewcomers() > 0) {
      busy = true;
      relax.Reset();
      continue;
    }
    if (!never_sleeps && (sleeps_at_once || ++looks % kLooksPerClock == 0)) {
      const Nanoseconds now = SteadyClock::Instance().Now();
      if (std::exchange(busy, false)) idle_since = now;
      if (now - idle_since >= spin) {
        queue_->Wait(service_->expects_entries() ? Nanoseconds(kEntriesAwaited) : Nanoseconds(kForever));
        continue;
      }
    }
    if (never_sleeps) {
      Relax::Pause();
    } else {
      relax.Step();
    }
  }
}

void Server::Listen() {
  while (!stop_.load(std::memory_order_acquire)) {
    while (auto incoming = listener_->Poll()) {
      {
        const std::scoped_lock lock(mutex_);
        newcomers_.push_back(std::move(incoming));
      }
      has_newcomers_.store(true, std::memory_order_release);  // Pairs with the exchange in AdmitNewcomers.
      queue_->Wake();
    }
    listener_->Wait(kForever);
  }
}

size_t Server::AdmitNewcomers() {
  if (!has_newcomers_.load(std::memory_order_relaxed)) return 0;
  if (!has_newcomers_.exchange(false, std::memory_order_acquire)) return 0;
  std::deque<std::unique_ptr<fabric::Incoming>> newcomers;
  {
    const std::scoped_lock lock(mutex_);
    newcomers.swap(newcomers_);
  }
  for (auto& incoming : newcomers) service_->Admit(std::move(incoming));
  return newcomers.size();
}

}  // namespace erda::schemes
