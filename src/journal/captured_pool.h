// The pool that the writer of one shard uses if the pool has a journal or a mirror. It copies all that the writer
// flushes into the shard's stream.
//
// After a failure of the disk the pool is memory alone. A flush that finds no room is dropped then, and so are all
// later ones: the stream gets no hole.
//
// The bytes are those of an image, which all shards share. A flush copies its range to the end of the stream, as the
// range is at that moment. A fence has nothing to do: the stream is in order. So the medium is power-safe for all that
// comes before a place up to which the stream is held. The disk's thread says how far that is.
//
// The bytes of a mirrored pool are its own medium, so they are written back and fenced as without a stream. The stream
// tells the mirror of each fence (docs/mirror.md).
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>

#include "journal/health.h"
#include "journal/shard_front.h"
#include "journal/stream.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::journal {

// Belongs to the shard's thread. Owns neither the image nor the stream: both outlive it.
class CapturedPool : public nvm::Pool {
 public:
  // A shorter range of zeroes goes to the stream like other bytes: a look at each short flush would cost more.
  static constexpr uint64_t kZeroesMin = 256;

  // The pool's view of its disk.
  struct Medium {
    // The place up to which the disk holds the stream. Null: the shard does not wait for the disk, and a power cut
    // takes what the disk does not hold yet. Then all that is flushed counts as held.
    const std::atomic<Place>* held;
    const Health* health;
    // Returns when there may be more room in the stream. A flush without room calls it, and tries again.
    std::function<void()> await_room;
    // Returns when the disk holds all of the stream, or the failure if it never will.
    std::function<Status()> await_held;
    // This number of answers waits until the disk holds all of the stream.
    std::function<void(uint64_t waiters)> ask;
    // The front of the shard, which holds bytes before the disk does. Null: there is no front. REQUIRES: then `held` is
    // not null.
    ShardFront* front = nullptr;
    bool mirrored = false;
  };
  // REQUIRES: what the medium names outlives the pool.
  CapturedPool(nvm::Pool& image, Stream& stream, Medium medium);

  [[nodiscard]] MemoryView view() const override;
  [[nodiscard]] bool created() const override { return image_.created(); }
  [[nodiscard]] nvm::LargePages large_pages() const override { return image_.large_pages(); }
  void RemoveIfCreated() override { image_.RemoveIfCreated(); }
  // Refuses: the pool file and the streams have the old size.
  Status Widen(uint64_t kept, uint64_t size) override;
  [[nodiscard]] bool holds_later() const override { return true; }
  // After a dropped flush no place has all that was flushed.
  [[nodiscard]] uint64_t place() const override { return dropped_ ? UINT64_MAX : stream_.end(); }
  [[nodiscard]] uint64_t held() const override {
    if (medium_.held == nullptr) return stream_.end();
    // Pairs with the release of the disk's thread: the stream is held before anybody answers because of that.
    const Place disk = medium_.held->load(std::memory_order_acquire);
    return medium_.front == nullptr ? disk : std::max(disk, medium_.front->end());
  }
  Status AwaitHeld() override;
  // Returns when the front holds the stream, if there is one that can. The disk gets it later.
  void AskHeld(uint64_t waiters) override {
    if (held() >= place()) return;
    FenceImage();
    if (!FrontHoldsAll()) medium_.ask(waiters);
  }
  [[nodiscard]] bool failed() const override { return !medium_.health->ok(); }
  [[nodiscard]] int error_number() const override { return medium_.health->error_number(); }
  // Sync waits for nothing and returns ok, as for NVM: the stream keeps the order of all flushes. boot() returns
  // zeroes: no bytes wait in a page cache.

 protected:
  void Drain() override { FenceImage(); }

 private:
  void FlushRange(const std::byte* begin, size_t size) override;
  void FlushZeroes(const std::byte* begin, size_t size) override;
  // Call it before a mirror may get more of the stream. After a power cut the image must have all that the mirror has.
  void FenceImage() {
    if (!medium_.mirrored) return;
    image_writer_.Fence();
    fenced_ = true;
  }
  void Capture(const std::byte* begin, size_t size);
  void CaptureZeroes(const std::byte* begin, size_t size);
  void AwaitRoom();
  bool FrontHoldsAll() { return medium_.front != nullptr && medium_.front->HoldAll(); }

  nvm::Pool& image_;
  nvm::Writer image_writer_;  // Of a mirrored pool: for write-backs alone.
  Stream& stream_;
  const Medium medium_;
  // Of a mirrored pool: a fence follows the stream's last entry. The process before this one may have fenced there.
  bool fenced_;
  bool dropped_ = false;  // A flush found no room after the failure. All later flushes are dropped, too.
};

}  // namespace erda::journal
