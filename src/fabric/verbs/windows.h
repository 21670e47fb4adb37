// The memory windows of one channel, of type 2B. Each window is bound once, since some drivers bind no window a second
// time.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "erda/status.h"

namespace erda::fabric::verbs {

struct Deregister {
  void operator()(ibv_mr* mr) const { (void)ibv_dereg_mr(mr); }
};
using UniqueMr = std::unique_ptr<ibv_mr, Deregister>;

// Returns true if the bytes from the offset on are a piece of a region of this size, and not empty.
[[nodiscard]] constexpr bool IsPiece(uint64_t size, uint64_t offset, uint64_t bytes) {
  return bytes > 0 && bytes <= size && offset <= size - bytes;
}

// A window from its allocation until it is freed.
struct Window {
  uint32_t key = 0;  // The key of the one binding.
  ibv_mw* window = nullptr;
  ibv_mw_bind_info binding{};
  UniqueMr own;  // The region in which the window is bound, if it has a separate one.
};

// Windows that are open, or are to be opened or closed. The thread of the channel's queue calls it.
class Windows {
 public:
  Windows() = default;
  ~Windows() { FreeAll(); }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  // Allocates a window over the bytes, and returns the key of its binding. The caller must post the binding. Binds in
  // `own` if it is set, and in `region` otherwise. The window owns `own`. REQUIRES: the region holds the bytes.
  Result<uint32_t> Allocate(ibv_pd* domain, std::span<const std::byte> bytes, ibv_mr* region, UniqueMr own);
  // Returns null if there is no such window. The pointer is valid until the next Allocate or Free.
  [[nodiscard]] const Window* Find(uint32_t key) const;
  // Makes the device forget the window. Its key opens nothing after that.
  void Free(uint32_t key);
  // REQUIRES: nothing is placed through the windows any more.
  void FreeAll();

 private:
  std::vector<Window> windows_;
};

}  // namespace erda::fabric::verbs
