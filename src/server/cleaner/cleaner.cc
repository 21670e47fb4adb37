#include "server/cleaner/cleaner.h"

#include <variant>

#include "server/control/counters.h"

namespace erda::server {

Cleaner::Cleaner(nvm::Pool& pool, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
                 std::span<std::byte> control, CleanQueues& queues, const ServerTime& time)
    : nvm_(pool),
      index_(nvm_, geometry, shard, index::Published::In(control, geometry)),
      queues_(queues),
      objects_(nvm_, geometry, pool_seed, shard, control),
      merge_(nvm_, index_, geometry, pool_seed, shard, queues, Counters(control), time),
      zeroer_(nvm_, geometry, queues.proposals),
      pages_(pool, queues.pages),
      look_(index_, objects_, queues.proposals, time),
      sweep_(look_, queues.proposals),
      rounds_(look_, queues.expiring_puts),
      scrubber_(index_, objects_, queues.proposals, Counters(control)) {}

// Zeroing comes first: a put may wait for the region. A put without its page waits for one fault only.
bool Cleaner::Step() {
  (void)index_.Refresh();
  const bool told = TakeOrders();
  if (zeroer_.has_work()) return zeroer_.Step();
  if (pages_.Step()) return true;
  const bool walked = merge_.Step();
  return sweep_.Step() || walked || told;
}

bool Cleaner::TakeOrders() {
  bool any = false;
  while (const auto order = queues_.orders.Pop()) {
    any = true;
    std::visit([this](const auto& what) { Obey(what); }, *order);
  }
  return any;
}

}  // namespace erda::server
