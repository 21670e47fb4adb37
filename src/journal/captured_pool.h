// The pool that the writer of one shard uses if the pool has a journal. It copies all that the writer flushes into the
// shard's stream.
//
// The bytes are those of an image, which all shards share. A flush copies its range to the end of the stream, as the
// range is at that moment. A fence has nothing to do: the stream is in order. So the medium is power-safe for all that
// comes before a place up to which the stream is held. The disk's thread says how far that is.
#pragma once

#include <atomic>
#include <functional>

#include "journal/stream.h"
#include "nvm/pool.h"

namespace erda::journal {

// Belongs to the shard's thread. Owns neither the image nor the stream: both outlive it.
class CapturedPool : public nvm::Pool {
 public:
  // A shorter range of zeroes goes to the stream like other bytes: a look at each short flush would cost more.
  static constexpr uint64_t kZeroesMin = 256;

  // held: the place up to which the stream is held. A flush calls `wait` as long as the stream has no room for it, and
  // tries again after each call; so does AwaitHeld. `wait` returns when the disk's thread may have released something.
  CapturedPool(nvm::Pool& image, Stream& stream, const std::atomic<Place>& held, std::function<void()> wait);

  [[nodiscard]] MemoryView view() const override;
  [[nodiscard]] bool created() const override { return image_.created(); }
  [[nodiscard]] nvm::LargePages large_pages() const override { return image_.large_pages(); }
  void RemoveIfCreated() override { image_.RemoveIfCreated(); }
  // Refuses: the pool file and the streams have the old size.
  Status Widen(uint64_t kept, uint64_t size) override;
  [[nodiscard]] bool holds_later() const override { return true; }
  [[nodiscard]] uint64_t place() const override { return stream_.end(); }
  [[nodiscard]] uint64_t held() const override {
    // Pairs with the release of the disk's thread: the stream is held before anybody answers because of that.
    return held_.load(std::memory_order_acquire);
  }
  Status AwaitHeld() override;
  // Sync waits for nothing and returns ok, as for NVM: the stream keeps the order of all flushes. boot() returns
  // zeroes: no bytes wait in a page cache.

 private:
  void FlushRange(const std::byte* begin, size_t size) override;
  void FlushZeroes(const std::byte* begin, size_t size) override;
  void Drain() override {}

  nvm::Pool& image_;
  Stream& stream_;
  const std::atomic<Place>& held_;
  std::function<void()> wait_;
};

}  // namespace erda::journal
