// Stores, write-backs and fences of one thread in the pool, with counts of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "nvm/pool.h"

namespace erda::nvm {

struct WriteCounters {
  uint64_t bytes = 0;    // Bytes stored.
  uint64_t flushes = 0;  // Ranges flushed.
  uint64_t fences = 0;
};

// Not thread-safe: each thread that writes has a Writer. Two Writers never store to the same word.
class Writer {
 public:
  explicit Writer(Pool& pool) : pool_(pool), bytes_(pool.bytes_) {}

  // Copies bytes into the pool. Other readers may see any part of it, in any order. REQUIRES: the range lies in the
  // pool.
  void Write(uint64_t offset, std::span<const std::byte> from) {
    if (from.empty()) return;  // memcpy takes no null pointer, even for 0 bytes.
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    counters_.bytes += from.size();
  }

  // Does the same, and stores each aligned word at once: neither a reader nor a power cut sees a part of a word.
  void WriteWords(uint64_t offset, std::span<const std::byte> from);

  // Stores zeroes over bytes that are not zero, and flushes all of the range. Bytes that are already zero may be so in
  // the caches only, by an earlier process.
  void ZeroOut(uint64_t offset, uint64_t size);

  // Stores a word atomically with release order: a reader that sees it in the cache also sees all earlier stores of
  // this thread. It pairs with the acquiring load of Load64, and with the order of a NIC's Reads. Flush and Fence order
  // the stores for the medium. REQUIRES: offset is 8-byte aligned.
  void Store64(uint64_t offset, uint64_t value) {
    std::atomic_ref<uint64_t>(*WordAt(offset)).store(value, std::memory_order_release);
    counters_.bytes += sizeof(uint64_t);
  }
  [[nodiscard]] uint64_t Load64(uint64_t offset) const {
    return std::atomic_ref<uint64_t>(*WordAt(offset)).load(std::memory_order_acquire);
  }

  // Flush begins to write back all cache lines that the range touches. The next Fence waits for all of them.
  void Flush(uint64_t offset, uint64_t size) {
    if (size == 0) return;
    pool_.FlushRange(bytes_.data() + offset, size);
    flushed_ = true;
    ++counters_.flushes;
  }
  // The same for a range that is all zeroes.
  void FlushZeroes(uint64_t offset, uint64_t size) {
    pool_.FlushZeroes(bytes_.data() + offset, size);
    flushed_ = true;
    ++counters_.flushes;
  }
  void Fence() {
    if (!flushed_) return;
    pool_.Drain();
    flushed_ = false;
    ++counters_.fences;
    if (pool_.write_latency().count() > 0) [[unlikely]]
      WaitLatency();
  }
  void Persist(uint64_t offset, uint64_t size) {
    Flush(offset, size);
    Fence();
  }

  // Calls Pool::Sync. It is for the few words without which a pool in an ordinary file could not be repaired.
  Status Sync(uint64_t offset, uint64_t size) { return pool_.Sync(offset, size); }

  // As Pool says.
  [[nodiscard]] bool holds_later() const { return pool_.holds_later(); }
  [[nodiscard]] uint64_t place() const { return pool_.place(); }
  [[nodiscard]] uint64_t held() const { return pool_.held(); }
  Status AwaitHeld() { return pool_.AwaitHeld(); }
  void AskHeld(uint64_t waiters) const { pool_.AskHeld(waiters); }
  [[nodiscard]] bool failed() const { return pool_.failed(); }
  [[nodiscard]] bool lacks_mirror() const { return pool_.lacks_mirror(); }
  [[nodiscard]] int error_number() const { return pool_.error_number(); }

  [[nodiscard]] std::span<const std::byte> Bytes(uint64_t offset, uint64_t size) const {
    return bytes_.subspan(offset, size);
  }
  // Advises the kernel that all of this range will be used soon. It begins to read pages of a file that are not in
  // memory.
  void WillUse(uint64_t offset, uint64_t size) const;
  // Calls WillUse piece by piece, for a reader that advances from `from` to `to` in a range that ends at `end`. Asks
  // for the piece with `to` and for the next one, except for pieces that were asked for when the reader reached `from`.
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
  // Waits for the delay of the pool's options.
  void WaitLatency() const;
  [[nodiscard]] uint64_t* WordAt(uint64_t offset) const { return reinterpret_cast<uint64_t*>(bytes_.data() + offset); }

  Pool& pool_;
  std::span<std::byte> bytes_;
  bool flushed_ = false;  // A flush came after the last fence.
  WriteCounters counters_;
};

}  // namespace erda::nvm
