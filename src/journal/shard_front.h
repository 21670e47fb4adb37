// Brings the stream of one shard into the shard's part of the front, at the end of each Poll if somebody waits. Then
// the front holds it, and nobody waits for the disk.
//
// The disk gets the stream later, in large records: at the latest when a quarter of the part is used. If the disk is so
// slow that the part has no room, answers wait for the disk.
//
// Owns nothing. The shard's thread calls it; any thread may ask for end() and counts().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "journal/front_part.h"
#include "journal/health.h"
#include "journal/place.h"
#include "journal/stream.h"
#include "nvm/pool.h"

namespace erda::journal {

class ShardFront {
 public:
  // `disk`: the place up to which the disk holds the stream. ask_disk: has the disk write the stream soon. `memory` has
  // the part. REQUIRES: all of these outlive the object. The part belongs to the stream's epoch, and ends at a place
  // that the stream has, or that is at most `disk`.
  ShardFront(nvm::Pool& memory, FrontPart& part, const Stream& stream, const std::atomic<Place>& disk, Health& health,
             std::function<void()> ask_disk);

  // Has the front hold all that the stream has now. Returns false if that is not possible: there is no room, or the
  // front or the disk has failed. Then the disk must.
  bool HoldAll();
  // The place up to which the front holds the stream. The disk may hold more.
  [[nodiscard]] Place end() const {
    // The shard's thread stores it, and answers because of it. Others only look at the number.
    return end_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] uint64_t bytes() const { return part_.capacity(); }
  // Times that the part had no room.
  [[nodiscard]] uint64_t full_times() const { return full_times_.load(std::memory_order_relaxed); }

 private:
  nvm::Pool& memory_;
  FrontPart& part_;
  const Stream& stream_;
  const std::atomic<Place>& disk_;
  Health& health_;
  const std::function<void()> ask_disk_;
  std::atomic<Place> end_;
  std::atomic<uint64_t> full_times_{0};
  bool was_full_ = false;
};

}  // namespace erda::journal
