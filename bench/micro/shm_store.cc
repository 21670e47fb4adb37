#include "bench/micro/shm_store.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/micro/fixed_pool.h"
#include "server/flush.h"
#include "server/sessions/gate.h"

namespace erda::micro {

namespace {

// Longer than any measurement, so that no operation looks at its deadline twice.
constexpr std::chrono::hours kTimeout{1};
constexpr uint64_t kWallMicros = 1'000'000'000'000'000;

}  // namespace

Result<std::unique_ptr<ShmStore>> ShmStore::Make(uint32_t cache_entries) {
  auto pool = MakeFixedPool();
  if (!pool.ok()) return pool.status();
  std::unique_ptr<ShmStore> store(new ShmStore(*std::move(pool)));
  if (store->folder_.path().empty()) return ErrnoStatus("cannot make a folder for a socket");
  if (auto status = store->Open(); !status.ok()) return status;
  if (auto status = store->Connect(cache_entries); !status.ok()) return status;
  return store;
}

ShmStore::ShmStore(std::unique_ptr<server::FormattedPool> pool)
    : pool_(std::move(pool)),
      time_(ServerTime::From(SteadyClock::Instance(), kWallMicros, 0, server::ExpiryClock::kNoteAhead * 1000)) {}

ShmStore::~ShmStore() = default;

// Makes the shard as erda::Server does, with the defaults of its options.
Status ShmStore::Open() {
  const std::string address = "shm:" + folder_.path() + "/socket";
  auto fabric = fabric::OpenFabric(address, fabric::Role::kListen);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  auto listener = fabric_->Listen(address);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  auto regions = server::PoolRegions::Register(*fabric_, pool_->pool());
  if (!regions.ok()) return regions.status();
  pool_regions_ = *std::move(regions);
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  const server::Port port{*fabric_, pool_regions_, *queue_,
                          server::ChooseFlush(FlushChoice::kAuto, pool_->pool().durability(), fabric_->capabilities())};
  server::ShardOptions options;
  options.server_id = 1;
  options.time = &time_;
  auto shard = server::Shard::Create(*pool_, 0, {&port, 1}, options);
  if (!shard.ok()) return shard.status();
  shard_ = *std::move(shard);
  if (auto status = shard_->data().TakeUp(); !status.ok()) return status;
  shard_->data().BeginCleaning();
  BeIdle();
  return {};
}

// An idle shard counts its keys soon after the start, and its cleaner finds that no value expires. This shard is never
// idle, so both do it here.
void ShmStore::BeIdle() {
  server::ShardData& data = shard_->data();
  bool counted = false;
  while (!counted || data.keeps_time()) {
    counted = data.CountKeys();
    data.cleaner().Sweep();
  }
}

// A call of the client waits for the connection, so another thread serves the shard until then.
Status ShmStore::Connect(uint32_t cache_entries) {
  std::atomic<bool> connected{false};
  std::thread server([&] {
    while (!connected.load(std::memory_order_acquire)) {
      Admit();
      shard_->Poll();
      std::this_thread::yield();
    }
  });
  ClientOptions options;
  options.cache_entries = cache_entries;
  options.timeout = kTimeout;
  auto client = Client::Connect(listener_->address(), std::move(options));
  connected.store(true, std::memory_order_release);  // pairs with the acquire above
  server.join();
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  return {};
}

void ShmStore::Admit() {
  auto incoming = listener_->Poll();
  if (!incoming) return;
  auto guest = server::Greet(*incoming, nullptr, 1);
  if (guest) shard_->Admit(std::move(incoming), guest->hello, 0, guest->admission);
}

void ShmStore::Serve() { shard_->Poll(); }

}  // namespace erda::micro
