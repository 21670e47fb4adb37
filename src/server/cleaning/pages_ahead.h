// Keeps pages ready where a shard's log will grow next. So neither the shard nor a client waits until the kernel has
// made them (docs/design.md, "Pages ahead").
//
// Owns how far the pages of each head are ordered. The shard's thread calls it. The cleaner's thread makes the pages.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "format/geometry.h"
#include "log/shard_log.h"
#include "nvm/pool.h"
#include "server/cleaner/clean_queues.h"

namespace erda::server {

class PagesAhead {
 public:
  // How many bytes after the end of each head are ready, or ordered.
  static constexpr uint64_t kAhead = 8 << 20;

  // Below this pace, in bytes a second for each head, a log in a file gets no large pages. A sync writes a changed page
  // of the file whole, so a large page that fills slowly would go to the disk many times.
  static constexpr uint64_t kPaceOnDisk = 2 << 20;

  PagesAhead(const log::ShardLog& log, const format::Geometry& geometry, uint32_t shard, nvm::LargePages large_pages,
             const Clock& clock, CleanQueues& queues);

  // Orders the first pages. Does nothing if the pool takes no large pages. Requires: the pool was taken up.
  void Begin();
  // Orders pages if the log has come near to the end of the ordered ones. Every step of the shard calls it.
  void Step() {
    if (log_.tails().appended() >= due_) Look();
  }

 private:
  // The pages of a region up to here are ordered.
  struct Reached {
    uint32_t region = log::kNoRegion;
    uint64_t bytes = 0;
    bool enlarged = false;  // On a disk: the rest of the region takes large pages.
  };

  void Look();
  void LookAt(uint32_t head, Reached* at);
  // On a disk: returns true if the log has grown fast enough since the look before.
  [[nodiscard]] bool KeepsPace();
  // On a disk: orders that the region's pages from the byte `from` on are large. Returns false if the queue has no
  // room.
  bool Enlarge(Reached* at, uint64_t from);
  // Orders the pages of the region up to the byte `until`. The log is at the byte `end`, modulo 2^64: before byte 0 in
  // a region that comes next. Returns false if the queue has no room.
  bool Order(Reached* at, uint64_t end, uint64_t until);
  bool Push(const PageOrder& order);

  const log::ShardLog& log_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
  CleanQueues& queues_;
  const nvm::LargePages large_pages_;
  const Clock& clock_;
  std::vector<Reached> heads_;
  Reached next_;               // The free region that a head takes next.
  uint64_t due_ = UINT64_MAX;  // The bytes appended at which to look again.
  Nanoseconds looked_at_{};
  uint64_t looked_after_ = 0;  // The bytes appended then.
};

}  // namespace erda::server
