#include "client/links.h"

#include <algorithm>

namespace erda::client {

Status Links::Prepare() {
  auto queue = fabric_.CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  Add(0);
  return {};
}

bool Links::Learn(const Link& link) {
  const bool is_other = !pool_.IsOf(link);
  if (is_other) {
    // The links come first. Once the geometry is known, Of may name each of them, and only this step can find no
    // memory.
    for (auto shard = static_cast<uint32_t>(links_.size()); shard < link.geometry().shards; ++shard) Add(shard);
    pool_ = {true, link.geometry(), link.hello().pool_uuid, link.hello().hash_seed};
  }
  pool_.geometry = link.geometry();  // the pool may have been grown
  return is_other;
}

bool Links::HasChunks() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->puts.has_chunks(); });
}

}  // namespace erda::client
