#include "journal/shard_front.h"

#include <algorithm>
#include <utility>

namespace erda::journal {

namespace {

// The disk gets records of this part of the front. The rest is room for what comes while it writes.
constexpr uint64_t kPartForRecord = 4;

}  // namespace

ShardFront::ShardFront(nvm::Pool& memory, FrontPart& part, const Stream& stream, const std::atomic<Place>& disk,
                       Health& health, std::function<void()> ask_disk)
    : memory_(memory),
      part_(part),
      stream_(stream),
      disk_(disk),
      health_(health),
      ask_disk_(std::move(ask_disk)),
      end_(part.end()) {}

bool ShardFront::HoldAll() {
  // After a failure, the stream may lack what the shard has flushed.
  if (!health_.ok()) return false;
  // Pairs with the release of the disk's thread: the part releases only bytes that are on the disk.
  const Place disk = disk_.load(std::memory_order_acquire);
  const Place end = stream_.end();
  const Place from = std::max(part_.end(), disk);
  if (from < end) {
    part_.Release(disk);
    const bool fits = part_.Append(from, stream_.Bytes(from, end));
    if (memory_.failed()) {
      health_.Fail({Code::kUnavailable, "the front of the journal has failed: it takes no more bytes"});
      return false;
    }
    if (!fits && !was_full_) full_times_.fetch_add(1, std::memory_order_relaxed);
    was_full_ = !fits;
    if (!fits) return false;
    end_.store(end, std::memory_order_relaxed);
  }
  if (part_.used() > part_.capacity() / kPartForRecord) ask_disk_();
  return true;
}

}  // namespace erda::journal
