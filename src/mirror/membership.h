// Which mirror counts: the one that may join, for all shards of a primary (docs/mirror.md, "Which mirror counts").
//
// A primary that stops without its mirror keeps the mirror's id in its superblock. So no other mirror counts until the
// operator has the primary forget that one. A primary that goes on alone keeps no id: its mirror counts until a shard
// gives it up.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "erda/status.h"

namespace erda::mirror {

// Any shard's thread calls it.
class Membership {
 public:
  // Stores the id of the mirror that counts in the primary's superblock. It is persistent on return. Any shard's thread
  // calls it, one call at a time. No other thread may change the superblock meanwhile.
  using Keep = std::function<Status(uint64_t id)>;

  // named: the mirror in the primary's superblock; 0: none. keep: empty if the primary goes on alone.
  Membership(uint64_t named, Keep keep) : keep_(std::move(keep)), counts_(named) {}

  // A mirror asks to join a shard. It counts if none did before. Returns kConflict if another one counts. Returns the
  // error of `keep`: then no mirror counts. Call it before the mirror hears that it has joined ("names-after-telling"
  // of tests/model/joining_model.py).
  Status Join(uint64_t id);
  // A shard goes on alone without this mirror. So another one may join all shards. REQUIRES: the primary may go on
  // alone, so `keep` is empty. Otherwise the mirror may be promoted, and no other one may join ("lets-another-join").
  void GiveUp(uint64_t id);
  [[nodiscard]] bool Counts(uint64_t id) const { return counts_.load(std::memory_order_acquire) == id; }

  // A mirror that joins stores what the streams have, in one shard and then in another. Each shard that hears of this
  // calls Progress. The number tells the other shards that the mirror is not stuck.
  void Progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] bool AnyCounts() const { return !Counts(0); }

  const Keep keep_;
  std::mutex mutex_;  // Of the changes.
  // The release in Join pairs with the acquire in Counts: a shard that finds the id finds the superblock written. A
  // shard that finds an old id acts later.
  std::atomic<uint64_t> counts_;
  std::atomic<uint64_t> progress_{0};
};

}  // namespace erda::mirror
