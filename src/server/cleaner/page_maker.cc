#include "server/cleaner/page_maker.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/map_shared.h"

namespace erda::server {

namespace {

// The log may have come this much nearer since the shard's last look, and until the pages are made.
constexpr uint64_t kMargin = 1 << 20;

}  // namespace

// While the kernel makes a large page, a store into it waits, and longer if this thread has to wait for a processor.
bool PageMaker::IsLate() const {
  return order_.reached_at != PageOrder::kNever &&
         orders_.appended.load(std::memory_order_relaxed) + kMargin >= order_.reached_at;
}

bool PageMaker::Step() {
  if (order_.bytes == 0) {
    const auto next = orders_.queue.Pop();
    if (!next) return false;
    order_ = *next;
  }
  const uint64_t bytes = std::min(order_.bytes, AlignDown(order_.offset + kLargePage, kLargePage) - order_.offset);
  if (order_.work == PageOrder::Work::kEnlarge) {
    pool_.Enlarge(order_.offset, bytes);
  } else if (!IsLate()) {
    pool_.MakeReady(order_.offset, bytes);
  }
  order_.offset += bytes;
  order_.bytes -= bytes;
  if (order_.reached_at != PageOrder::kNever) order_.reached_at += bytes;
  return true;
}

}  // namespace erda::server
