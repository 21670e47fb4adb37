#include "fabric/verbs/local_keys.h"

#include <algorithm>

namespace erda::fabric::verbs {

void LocalKeys::Add(const LocalKey& key) {
  const std::scoped_lock lock(mutex_);
  keys_.push_back(key);
  version_.fetch_add(1, std::memory_order_release);
}

void LocalKeys::Remove(const LocalKey& key) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(keys_, [&](const LocalKey& one) { return one.key == key.key && one.begin == key.begin; });
  version_.fetch_add(1, std::memory_order_release);
}

uint64_t LocalKeys::Copy(std::vector<LocalKey>* keys) const {
  const std::scoped_lock lock(mutex_);
  *keys = keys_;
  return version_.load(std::memory_order_relaxed);  // The mutex orders it.
}

const LocalKey* LocalKeyCopy::Find(std::span<const std::byte> bytes, bool to_write) {
  if (!IsCurrent(version_)) version_ = keys_.Copy(&copy_);
  const auto found = std::ranges::find_if(copy_, [&](const LocalKey& one) { return one.Holds(bytes, to_write); });
  return found == copy_.end() ? nullptr : &*found;
}

}  // namespace erda::fabric::verbs
