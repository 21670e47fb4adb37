// The NVM contract: a mapped pool, and the only ways to store into it.
//
// An aligned store of 8 bytes is atomic; no larger store is. A store may reach the medium at any time and in any order.
// It may never reach it until its range was flushed and a fence followed. The bytes are in docs/format.md. The failures
// that each kind of medium survives are in docs/guarantees.md.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "erda/status.h"
#include "format/durability.h"
#include "format/superblock.h"
#include "nvm/journal_counts.h"

namespace erda::nvm {

using format::Durability;

struct PoolOptions {
  std::string path;  // "dram:", a file, or /dev/daxX.Y.
  // The size of a new pool, and the least size of an existing one. 0 accepts the size of an existing pool.
  uint64_t size = 0;
  std::chrono::nanoseconds write_latency{0};  // A delay that is added to each fence with something to wait for.
  // For "dram:": whether any other process can ever map the pool for writing. A file keeps the rights that it has.
  SharedMemory::Writers writers = SharedMemory::Writers::kPeers;
  bool populate = false;  // FormattedPool calls Populate once it knows that this is a pool.
};

// Which large pages the kernel can make of a pool's memory.
enum class LargePages {
  kNone,      // None that Erda makes. libpmem maps the pages of NVM as large as they are.
  kInMemory,  // Those of dram: and tmpfs, which are on no disk.
  kOnDisk,    // Those of an ordinary file that fits into memory. The kernel reads and writes a large page whole.
};

// The mapped bytes of a pool. A lock on the file keeps other processes from opening the pool at the same time.
class Pool {
 public:
  // Maps an existing pool, or creates a file of options.size zeroes; created() tells which. An existing pool must have
  // at least options.size bytes. Returns kUnavailable if another process has the pool open. Returns kInvalidArgument if
  // the size does not fit or is missing.
  static Result<std::unique_ptr<Pool>> Open(const PoolOptions& options);

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  virtual ~Pool() = default;

  // Returns the bytes for reading. Stores go through a Writer.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] Durability durability() const { return durability_; }
  // Returns the durability that an answer vouches for. It is less where answers do not wait for the medium.
  [[nodiscard]] virtual Durability vouched() const { return durability_; }
  [[nodiscard]] std::chrono::nanoseconds write_latency() const { return write_latency_; }
  // Returns the memory that the fabric gives to clients.
  [[nodiscard]] virtual MemoryView view() const = 0;
  // Returns true if Open created the pool: then all bytes are zero.
  [[nodiscard]] virtual bool created() const = 0;
  // Returns true for a DAX device. It exists before it becomes a pool, and its bytes are unknown then.
  [[nodiscard]] virtual bool is_device() const { return false; }
  // Returns true if the kernel writes the pages to a disk. It finds changed pages by the CPU's stores, and misses the
  // stores of a NIC.
  [[nodiscard]] virtual bool written_back() const { return false; }
  [[nodiscard]] virtual LargePages large_pages() const { return LargePages::kNone; }
  // On a disk: the first store into a large page that is in the range will make all of it (pages.h, EnlargePages).
  // Changes no byte. Any thread may call it.
  void Enlarge(uint64_t offset, uint64_t size);
  // Makes the pages of a range, large ones where it can. Then the next stores there cause no fault in this process, and
  // few in others. Changes no byte. Takes about a millisecond for a large page. Any thread may call it.
  void MakeReady(uint64_t offset, uint64_t size);
  // Makes all pages of the pool, large ones where it can, so that no later store causes a fault in this process.
  // Changes no byte. Takes up to a second for each GiB. Returns kResourceExhausted if they do not fit into the memory.
  Status Populate();

  // Removes the file if this Open created it. The owner calls it when it could not make a pool of the file.
  virtual void RemoveIfCreated() = 0;

  // Makes the pool smaller: bytes() and view() end at `size`. REQUIRES: size <= size().
  void Narrow(uint64_t size) { bytes_ = bytes_.first(size); }
  // Makes the pool `size` bytes long and maps it again. The first `kept` bytes do not change. In a file the bytes after
  // them are persistent zeroes; in a device they are unknown. REQUIRES: there is no Writer, and no other code keeps the
  // old address. Returns kInvalidArgument if a device is too small, and kResourceExhausted if the disk is full.
  virtual Status Widen(uint64_t kept, uint64_t size) = 0;
  // Returns ok if the medium holds all earlier stores in this range. That includes media for which a Writer's Fence
  // does not wait. No later call mends an error: the kernel forgets pages that it failed to write. So a later ok says
  // nothing about bytes that were stored before the error.
  virtual Status Sync(uint64_t /*offset*/, uint64_t /*size*/) { return {}; }
  Status Sync() { return Sync(0, size()); }
  // Returns ok if the name of a file that Open created survives a power cut.
  virtual Status SyncName() { return {}; }

  // Returns true for a pool with a journal (docs/journal.md). A Writer flushes to the end of a stream there, and the
  // medium gets the bytes after the fence.
  [[nodiscard]] virtual bool holds_later() const { return false; }
  // Returns true for the pool of a primary that sends its stream to mirrors (docs/mirror.md).
  [[nodiscard]] virtual bool has_mirrors() const { return false; }
  // On a pool with a journal: the end of the stream, and the place up to which the medium has it for good. On any other
  // pool both are 0.
  [[nodiscard]] virtual uint64_t place() const { return 0; }
  [[nodiscard]] virtual uint64_t held() const { return 0; }
  // Waits until the medium holds the stream up to its present end. Returns an error if it never will.
  virtual Status AwaitHeld() { return {}; }
  // Has the medium write the stream up to its present end soon, for this number of waiting answers.
  virtual void AskHeld([[maybe_unused]] uint64_t waiters) {}
  // `tell` hears of the shard's stream: at once, and when the medium holds more of it, has made a checkpoint, or has
  // failed. Any thread calls it, one call at a time. An empty function ends that.
  using TellHeld = std::function<void(const JournalCounts&)>;
  virtual void OnHeld(uint32_t /*shard*/, TellHeld /*tell*/) {}
  // Returns true if the medium of a pool with a journal has failed. Then held() grows no more, but for a write that was
  // under way.
  [[nodiscard]] virtual bool failed() const { return false; }
  // Returns true if it has failed because no mirror is in sync. It works again when one is.
  [[nodiscard]] virtual bool lacks_mirror() const { return false; }
  // Returns the error number of the medium's first failure. 0: it has not failed, or the number is unknown.
  [[nodiscard]] virtual int error_number() const { return 0; }
  // Returns the pool for the Writer of a shard. A pool with a journal has one for each, since each shard has a stream.
  [[nodiscard]] virtual Pool& OfShard(uint32_t /*shard*/) { return *this; }

  // Returns the boot id of this machine if the pool's unsynced bytes live in its page cache. Returns zeroes if there
  // are no such bytes, or if the boot id is unknown.
  [[nodiscard]] virtual format::BootId boot() const { return {}; }

 protected:
  friend class Writer;
  Pool() = default;
  // FlushRange starts to write back the cache lines of a range. Drain waits until they are written back.
  virtual void FlushRange(const std::byte* begin, size_t size) = 0;
  // The same for a range of zeroes.
  virtual void FlushZeroes(const std::byte* begin, size_t size) { FlushRange(begin, size); }
  virtual void Drain() = 0;

  std::span<std::byte> bytes_;
  Durability durability_ = Durability::kVolatile;
  std::chrono::nanoseconds write_latency_{0};
};

}  // namespace erda::nvm
