#include "server/server_fabrics.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/flush.h"

namespace erda::server {

Result<size_t> ServerFabrics::PortOf(const std::string& address) {
  auto opened = fabric::OpenFabric(address, fabric::Role::kListen);
  if (!opened.ok()) return opened.status();
  const auto same = std::find_if(fabrics_.begin(), fabrics_.end(), [&](const auto& fabric) {
    return fabric->scheme() == (*opened)->scheme() && fabric->capabilities().device == (*opened)->capabilities().device;
  });
  const auto port = static_cast<size_t>(same - fabrics_.begin());
  if (same == fabrics_.end()) fabrics_.push_back(*std::move(opened));
  return port;
}

Result<ServerFabrics::Listening> ServerFabrics::Listen(const std::string& address) {
  const auto port = PortOf(address);
  if (!port.ok()) return port.status();
  auto listener = fabrics_[*port]->Listen(address);
  if (!listener.ok()) return listener.status();
  return Listening{*std::move(listener), *port};
}

Status ServerFabrics::OpenForReaders(bool with_tokens) {
  for_readers_.resize(fabrics_.size());
  if (!with_tokens) return {};
  for (size_t i = 0; i < for_readers_.size(); ++i) {
    auto fabric = fabrics_[i]->ForReaders();
    if (!fabric.ok()) return fabric.status();
    if (*fabric == nullptr) continue;
    for_readers_[i] = fabrics_.size();
    fabrics_.push_back(*std::move(fabric));
  }
  return {};
}

Status ServerFabrics::RegisterPool(const nvm::Pool& pool, PoolWrites writes, FlushChoice flush) {
  for (const auto& fabric : fabrics_) {
    const bool is_for_readers = pool_regions_.size() >= for_readers_.size();
    const Nanoseconds begin = SteadyClock::Instance().Now();
    auto regions = PoolRegions::Register(*fabric, pool, is_for_readers ? PoolWrites::kNobody : writes);
    if (!regions.ok()) return regions.status();
    pool_regions_.push_back(*std::move(regions));
    // Bytes that a client makes persistent by itself would come into no stream.
    const FlushChoice choice = pool.holds_later() ? FlushChoice::kServerFlush : flush;
    flush_methods_.push_back(ChooseFlush(choice, pool.durability(), fabric->capabilities()));
    if (is_for_readers) continue;
    infos_.push_back({std::string(fabric->scheme()), fabric->capabilities().device,
                      format::FlushMethodName(flush_methods_.back()), SteadyClock::Instance().Now() - begin});
  }
  return {};
}

Result<std::vector<std::unique_ptr<fabric::CompletionQueue>>> ServerFabrics::CreateQueues() const {
  std::vector<std::unique_ptr<fabric::CompletionQueue>> queues;
  for (const auto& fabric : fabrics_) {
    auto queue = fabric->CreateQueue();
    if (!queue.ok()) return queue.status();
    queues.push_back(*std::move(queue));
  }
  return queues;
}

std::vector<Port> ServerFabrics::PortsOf(ShardThread& thread) const {
  std::vector<Port> ports;
  for (size_t i = 0; i < fabrics_.size(); ++i) {
    ports.push_back({*fabrics_[i], pool_regions_[i], thread.queue(i), flush_methods_[i],
                     i < for_readers_.size() ? for_readers_[i] : std::nullopt});
  }
  return ports;
}

}  // namespace erda::server
