#include "server/cleaner/page_maker.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/map_shared.h"

namespace erda::server {

namespace {

// Pages of a file on a disk that one step makes. That takes some tens of microseconds, for which a shard on the same
// processor may have to wait. A large page cannot be made in parts.
constexpr uint64_t kSmallStep = 64 << 10;

}  // namespace

bool PageMaker::Step() {
  if (order_.bytes == 0) {
    const auto next = orders_.Pop();
    if (!next) return false;
    order_ = *next;
  }
  const uint64_t step = pool_.ahead() == nvm::Pool::Ahead::kLargePages ? kLargePage : kSmallStep;
  const uint64_t bytes = std::min(order_.bytes, AlignDown(order_.offset + step, step) - order_.offset);
  pool_.MakeReady(order_.offset, bytes);
  order_.offset += bytes;
  order_.bytes -= bytes;
  return true;
}

}  // namespace erda::server
