// The NVM contract: a mapped pool, and the only ways to store into it.
//
// 8-byte aligned stores are atomic; nothing larger is. A store may reach the medium at any time, in any order, or,
// until its range was flushed and a fence followed, never. docs/format.md has the bytes, docs/guarantees.md what each
// kind of medium survives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "erda/status.h"
#include "format/durability.h"
#include "format/superblock.h"

namespace erda::nvm {

using format::Durability;

struct PoolOptions {
  std::string path;                           // "dram:", a file, /dev/daxX.Y
  uint64_t size = 0;                          // to create, and the least of what is there; 0 to take that
  std::chrono::nanoseconds write_latency{0};  // added to each fence that has something to wait for
  // Of "dram:" whether anybody else can ever map it for writing. (A file has the rights that it has.)
  SharedMemory::Writers writers = SharedMemory::Writers::kPeers;
};

// The mapped bytes. One process at a time has a pool open: a lock on the file says so.
class Pool {
 public:
  // Maps what is there, or creates a file of zeroes of options.size bytes. created() tells which. What is there has
  // that many bytes at least. kUnavailable: another process has it open. kInvalidArgument: the size does not fit, or is
  // missing.
  static Result<std::unique_ptr<Pool>> Open(const PoolOptions& options);

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  virtual ~Pool() = default;

  // For reading. Stores go through a Writer.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] Durability durability() const { return durability_; }
  [[nodiscard]] std::chrono::nanoseconds write_latency() const { return write_latency_; }
  // The fabric hands this to clients.
  [[nodiscard]] virtual MemoryView view() const = 0;
  // True if Open made the bytes: they are all zero.
  [[nodiscard]] virtual bool created() const = 0;
  // True for a DAX device: it is there before it is a pool, and nobody knows what it holds.
  [[nodiscard]] virtual bool is_device() const { return false; }
  // The kernel writes the pages to a disk, and looks at the CPU's stores to know which. It misses what a NIC stores.
  [[nodiscard]] virtual bool written_back() const { return false; }
  // Removes a file that this Open created: for an owner that could not make a pool of it.
  virtual void RemoveIfCreated() = 0;

  // What is behind is none of the pool: bytes() and view() end there. REQUIRES: size <= size().
  void Narrow(uint64_t size) { bytes_ = bytes_.first(size); }
  // There are so many bytes, mapped anew, and none of those before `kept` has changed. In a file those behind are
  // zeroes, and it has them persistently; of a device nobody knows what they are. No Writer is left, and none knows
  // these bytes by their old address. kInvalidArgument: a device is smaller. kResourceExhausted: the disk is full.
  virtual Status Widen(uint64_t kept, uint64_t size) = 0;
  // Returns ok if the medium holds what was stored in this range so far, also where a Writer's Fence does not wait for
  // that. An error cannot be mended by another call: the kernel forgets pages that it failed to write, so a later ok
  // says nothing of the bytes that were stored before the error.
  virtual Status Sync(uint64_t /*offset*/, uint64_t /*size*/) { return {}; }
  Status Sync() { return Sync(0, size()); }
  // Returns ok if a file that Open created is found under its name after a power cut.
  virtual Status SyncName() { return {}; }
  // The boot of this machine, if the pool's unsynced bytes live in its page cache. Zeroes: there are no such bytes, or
  // the boot is unknown.
  [[nodiscard]] virtual format::BootId boot() const { return {}; }

 protected:
  friend class Writer;
  Pool() = default;
  // Starts writing back the cache lines of a range / waits until that has happened.
  virtual void FlushRange(const std::byte* begin, size_t size) = 0;
  virtual void Drain() = 0;

  std::span<std::byte> bytes_;
  Durability durability_ = Durability::kVolatile;
  std::chrono::nanoseconds write_latency_{0};
};

}  // namespace erda::nvm
