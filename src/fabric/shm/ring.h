// Messages from one end of a channel to the other: a single-producer single-consumer ring in memory that both ends map.
// The peer may write anything there at any time: what is read is checked, and each end keeps its own index to itself.
//
//   one direction:  0        64       128        192       256               256 + 16 n           256 + 16 n + 256 n
//                   +--------+--------+----------+---------+-----------------+--------------------+
//                   | tail   | head,  | sleeping | placing | n descriptors   | n messages of 256 B|   n: power of two
//                   |        | gone   |          |         |                 |                    |
//                   +--------+--------+----------+---------+-----------------+--------------------+
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "fabric/fabric.h"
#include "fabric/shm/copy.h"

namespace erda::fabric::shm {

struct Descriptor {
  uint32_t kind;  // an OpKind: kReceiveImm or kReceive
  uint32_t imm;
  uint32_t bytes;
  uint32_t reserved;
};
static_assert(sizeof(Descriptor) == 16);

class Ring {
 public:
  static constexpr uint64_t Slots(uint32_t depth) { return std::bit_ceil(depth); }
  static constexpr uint64_t Bytes(uint32_t depth) {
    return kHeaderBytes + Slots(depth) * (sizeof(Descriptor) + kSendBytesMax);
  }

  Ring() = default;
  // memory: Bytes(depth) zeroed bytes, aligned to a cache line. Both ends begin at 0.
  Ring(std::byte* memory, uint32_t depth) : memory_(memory), mask_(Slots(depth) - 1), depth_(depth) {}

  // --- The producer's end.

  [[nodiscard]] uint32_t Room() {
    // Acquire pairs with the release in Advance: the consumer is done with what it has passed.
    const uint64_t used = index_ - Word(kHeadAt).load(std::memory_order_acquire);
    return used > depth_ ? 0 : depth_ - static_cast<uint32_t>(used);  // more than depth: the peer wrote nonsense
  }
  // Fills the next place; Publish makes it visible. REQUIRES: Room() counted it.
  void Push(const Descriptor& descriptor, std::span<const std::byte> message) {
    CopyToShared(DescriptorAt(index_), reinterpret_cast<const std::byte*>(&descriptor), sizeof(descriptor));
    CopyToShared(MessageAt(index_), message.data(), message.size());
    ++index_;
  }
  // True if the consumer sleeps and must be woken.
  // Release: what was placed before comes first; pairs with the acquire in Peek. The fence orders the tail before the
  // look at the flag, and pairs with FenceSleep: either the consumer sees the tail, or this sees the flag.
  [[nodiscard]] bool Publish() {
    Word(kTailAt).store(index_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Word(kSleepingAt).load(std::memory_order_relaxed) != 0 &&
           Word(kSleepingAt).exchange(0, std::memory_order_relaxed) != 0;
  }

  // Before the first byte is placed in the consumer's memory, and after the last. False: the consumer is gone, and
  // nothing may be placed any more.
  // The store, this look, and those of Leave and IsPlacing are in one order (sequentially consistent): either the
  // producer finds the consumer gone, or the consumer, who has just said that it is, finds the producer placing.
  [[nodiscard]] bool BeginPlacing() {
    Word(kPlacingAt).store(1, std::memory_order_seq_cst);
    if (Word(kGoneAt).load(std::memory_order_seq_cst) == 0) return true;
    EndPlacing();
    return false;
  }
  // Release pairs with the acquire in IsPlacing: who finds it ended finds all that was placed.
  void EndPlacing() { Word(kPlacingAt).store(0, std::memory_order_release); }

  // Asked after one-sided operations: if it says no, the consumer was there while they were done. `wrote`: there were
  // Writes among them, which a load would otherwise overtake.
  [[nodiscard]] bool ConsumerIsGone(bool wrote) const {
    std::atomic_thread_fence(wrote ? std::memory_order_seq_cst : std::memory_order_acquire);
    return Word(kGoneAt).load(std::memory_order_acquire) != 0;
  }

  // --- The consumer's end.

  enum class Look { kEmpty, kMessage, kNonsense };
  Look Peek(Descriptor* descriptor) {
    if (index_ == known_tail_) {
      const uint64_t tail = Word(kTailAt).load(std::memory_order_acquire);
      if (index_ == tail) return Look::kEmpty;
      if (tail - index_ > depth_) return Look::kNonsense;
      known_tail_ = tail;
    }
    CopyFromShared(reinterpret_cast<std::byte*>(descriptor), DescriptorAt(index_), sizeof(*descriptor));
    return Look::kMessage;
  }
  // The message that Peek described, out of the peer's reach.
  void Copy(std::span<std::byte> message) { CopyFromShared(message.data(), MessageAt(index_), message.size()); }
  void Advance() { Word(kHeadAt).store(++index_, std::memory_order_release); }
  [[nodiscard]] uint64_t consumed() const { return index_; }
  [[nodiscard]] uint32_t depth() const { return depth_; }

  // The consumer's end is gone for good: what it does from here on sees everything that the producer placed before a
  // ConsumerIsGone that said no. The fence pairs with the one there.
  void Leave() {
    Word(kGoneAt).store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // After Leave: whether the producer is placing something still. Once it is not, it never will be again.
  [[nodiscard]] bool IsPlacing() const { return Word(kPlacingAt).load(std::memory_order_seq_cst) != 0; }

  // From here until EndSleep the producer wakes the consumer. The caller calls FenceSleep, once for several rings, and
  // looks into each ring once more before it sleeps or parks.
  void BeginSleep() { Word(kSleepingAt).store(1, std::memory_order_relaxed); }
  void EndSleep() { Word(kSleepingAt).store(0, std::memory_order_relaxed); }
  // Orders the flags before the looks. Pairs with the fence in Publish.
  static void FenceSleep() { std::atomic_thread_fence(std::memory_order_seq_cst); }

 private:
  static constexpr uint64_t kTailAt = 0;
  static constexpr uint64_t kHeadAt = kCacheLine;
  static constexpr uint64_t kGoneAt = kHeadAt + sizeof(uint64_t);  // beside head: the consumer writes both
  static constexpr uint64_t kSleepingAt = 2 * kCacheLine;
  static constexpr uint64_t kPlacingAt = 3 * kCacheLine;  // the producer's own: nobody looks before the end
  static constexpr uint64_t kHeaderBytes = 4 * kCacheLine;

  [[nodiscard]] std::atomic_ref<uint64_t> Word(uint64_t at) const {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory_ + at));
  }
  [[nodiscard]] std::byte* DescriptorAt(uint64_t index) const {
    return memory_ + kHeaderBytes + (index & mask_) * sizeof(Descriptor);
  }
  [[nodiscard]] std::byte* MessageAt(uint64_t index) const {
    return memory_ + kHeaderBytes + (mask_ + 1) * sizeof(Descriptor) + (index & mask_) * kSendBytesMax;
  }

  std::byte* memory_ = nullptr;
  uint64_t mask_ = 0;
  uint32_t depth_ = 0;
  uint64_t index_ = 0;       // next place to fill or to look at; this end's own, never read back from shared memory
  uint64_t known_tail_ = 0;  // consumer only
};

}  // namespace erda::fabric::shm
