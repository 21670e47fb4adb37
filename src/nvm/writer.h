// One thread's hand on the pool: stores, write-backs and fences, all counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "nvm/pool.h"

namespace erda::nvm {

struct WriteCounters {
  uint64_t bytes = 0;    // stored
  uint64_t flushes = 0;  // ranges
  uint64_t fences = 0;
};

// Not thread-safe: one for each thread that writes. Two Writers never store to one word.
class Writer {
 public:
  explicit Writer(Pool& pool) : pool_(pool), bytes_(pool.bytes_) {}

  // Copies bytes in. Readers elsewhere may see any part of it, in any order. REQUIRES: the range lies in the pool.
  void Write(uint64_t offset, std::span<const std::byte> from);

  // Stores zeroes where something else stands, and flushes all of the range: what is zero already may be so in the
  // caches alone, by an earlier process.
  void ZeroOut(uint64_t offset, uint64_t size);

  // One atomic store, released: a reader that sees it in the cache also sees what this thread stored before it. It
  // pairs with the acquiring load of Load64, and with the order of a NIC's Reads. What the medium sees is up to Flush
  // and Fence. REQUIRES: offset is 8-byte aligned.
  void Store64(uint64_t offset, uint64_t value) {
    std::atomic_ref<uint64_t>(*WordAt(offset)).store(value, std::memory_order_release);
    counters_.bytes += sizeof(uint64_t);
  }
  [[nodiscard]] uint64_t Load64(uint64_t offset) const {
    return std::atomic_ref<uint64_t>(*WordAt(offset)).load(std::memory_order_acquire);
  }

  // Flush begins the write-back of all cache lines that the range touches; the next Fence waits for all of them.
  void Flush(uint64_t offset, uint64_t size);
  void Fence();
  void Persist(uint64_t offset, uint64_t size) {
    Flush(offset, size);
    Fence();
  }

  // Pool::Sync: for the few words that a pool in an ordinary file cannot be repaired without.
  Status Sync(uint64_t offset, uint64_t size) { return pool_.Sync(offset, size); }

  [[nodiscard]] std::span<const std::byte> Bytes(uint64_t offset, uint64_t size) const {
    return bytes_.subspan(offset, size);
  }
  // Advice: all of this range will be used soon. A file's pages that are not in memory begin to come in.
  void WillUse(uint64_t offset, uint64_t size) const;
  // The same, piece by piece, for who goes on from one place to another in a range that ends there: of the piece that
  // it comes to and of the next one, as far as they were not asked for when it came to `from`.
  static constexpr uint64_t kPieceAhead = 128 << 10;
  void GoesOn(uint64_t from, uint64_t to, uint64_t end) const {
    const uint64_t piece = AlignDown(to, kPieceAhead);
    const uint64_t begin = std::max(AlignDown(from, kPieceAhead) + 2 * kPieceAhead, piece);
    const uint64_t until = std::min(piece + 2 * kPieceAhead, end);
    if (begin < until) WillUse(begin, until - begin);
  }
  [[nodiscard]] const Pool& pool() const { return pool_; }
  [[nodiscard]] const WriteCounters& counters() const { return counters_; }

 private:
  [[nodiscard]] uint64_t* WordAt(uint64_t offset) const { return reinterpret_cast<uint64_t*>(bytes_.data() + offset); }

  Pool& pool_;
  std::span<std::byte> bytes_;
  bool flushed_ = false;  // something was flushed since the last fence
  WriteCounters counters_;
};

}  // namespace erda::nvm
