#include "fabric/verbs/windows.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace erda::fabric::verbs {

Result<uint32_t> Windows::Allocate(ibv_pd* domain, std::span<const std::byte> bytes, ibv_mr* region, UniqueMr own) {
  ibv_mw* const window = ibv_alloc_mw(domain, IBV_MW_TYPE_2);
  if (window == nullptr) return ErrnoStatus("cannot allocate a memory window");
  const uint32_t key = ibv_inc_rkey(window->rkey);
  const ibv_mw_bind_info binding = {own ? own.get() : region, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                                    IBV_ACCESS_REMOTE_WRITE};
  windows_.push_back({key, window, binding, std::move(own)});
  return key;
}

const Window* Windows::Find(uint32_t key) const {
  const auto found = std::ranges::find(windows_, key, &Window::key);
  return found == windows_.end() ? nullptr : &*found;
}

void Windows::Free(uint32_t key) {
  const auto found = std::ranges::find(windows_, key, &Window::key);
  if (found == windows_.end()) return;
  (void)ibv_dealloc_mw(found->window);  // Before its region goes.
  windows_.erase(found);
}

void Windows::FreeAll() {
  while (!windows_.empty()) Free(windows_.back().key);
}

}  // namespace erda::fabric::verbs
