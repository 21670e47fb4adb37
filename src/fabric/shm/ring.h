// Messages from one end of a channel to the other: a single-producer single-consumer ring in memory that both ends map.
// The peer may write anything there at any time. So each end checks what it reads, and keeps its index in private
// memory.
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
#include <span>

#include "base/bytes.h"
#include "fabric/fabric.h"
#include "fabric/shm/copy.h"

namespace erda::fabric::shm {

struct Descriptor {
  uint32_t kind;  // An OpKind: kReceiveImm or kReceive.
  uint32_t imm;
  uint32_t bytes;
  uint32_t reserved;

  // The ring holds a descriptor as two words.
  static Descriptor Of(uint64_t first, uint64_t second) {
    return {static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32), static_cast<uint32_t>(second),
            static_cast<uint32_t>(second >> 32)};
  }
  [[nodiscard]] uint64_t first() const { return uint64_t{imm} << 32 | kind; }
  [[nodiscard]] uint64_t second() const { return uint64_t{reserved} << 32 | bytes; }
};
static_assert(sizeof(Descriptor) == 16);

class Ring {
 public:
  static constexpr uint64_t Slots(uint32_t depth) { return std::bit_ceil(depth); }
  static constexpr uint64_t Bytes(uint32_t depth) {
    return kHeaderBytes + Slots(depth) * (sizeof(Descriptor) + kSendBytesMax);
  }

  Ring() = default;
  // Requires: `memory` is Bytes(depth) zeroed bytes, aligned to a cache line. Both ends begin at 0.
  Ring(std::byte* memory, uint32_t depth) : memory_(memory), mask_(Slots(depth) - 1), depth_(depth) {}

  // --- The producer's end.

  [[nodiscard]] uint32_t Room() {
    // Acquire pairs with the release in Advance: the consumer has finished with the messages that it passed.
    const uint64_t used = index_ - Word(kHeadAt).load(std::memory_order_acquire);
    return used > depth_ ? 0 : depth_ - static_cast<uint32_t>(used);  // More than the depth: the peer wrote nonsense.
  }
  // Fills the next place. Publish makes it visible. REQUIRES: Room() counted it.
  [[gnu::always_inline]] void Push(const Descriptor& descriptor, std::span<const std::byte> message) {
    // Relaxed, as are the loads in Peek: Publish orders them.
    const uint64_t at = DescriptorAt(index_);
    Word(at).store(descriptor.first(), std::memory_order_relaxed);
    Word(at + sizeof(uint64_t)).store(descriptor.second(), std::memory_order_relaxed);
    if (!message.empty()) CopyToShared(MessageAt(index_), message.data(), message.size());
    ++index_;
  }
  // Publishes the pushed messages. Returns true if the consumer sleeps and must be woken. The release orders earlier
  // placed bytes before the tail, and pairs with the acquire in Peek. The fence orders the tail before the look at the
  // flag, and pairs with FenceSleep. Either the consumer sees the tail, or this end sees the flag.
  [[nodiscard]] bool Publish() {
    Word(kTailAt).store(index_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Word(kSleepingAt).load(std::memory_order_relaxed) != 0 &&
           Word(kSleepingAt).exchange(0, std::memory_order_relaxed) != 0;
  }

  // Announces that this end will place bytes in the consumer's memory. Must precede the first byte, and EndPlacing must
  // follow the last one. Returns false if the consumer is gone; then nothing may be placed any more. This store and
  // look, and those of Leave and IsPlacing, are in one order (sequentially consistent). So either the producer finds
  // the consumer gone, or the consumer, after Leave, finds the producer placing.
  [[nodiscard]] bool BeginPlacing() {
    Word(kPlacingAt).store(1, std::memory_order_seq_cst);
    if (Word(kGoneAt).load(std::memory_order_seq_cst) == 0) return true;
    EndPlacing();
    return false;
  }
  // Release pairs with the acquire in IsPlacing: a consumer that finds the placing ended finds all placed bytes.
  void EndPlacing() { Word(kPlacingAt).store(0, std::memory_order_release); }

  // Asked after one-sided operations. If it returns false, the consumer was there while they were executed. `wrote`:
  // there were Writes among them, which a load would otherwise overtake.
  [[nodiscard]] bool ConsumerIsGone(bool wrote) const {
    // Two calls, since a compiler takes an order that it does not know for the strongest one.
    if (wrote) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_acquire);
    }
    return Word(kGoneAt).load(std::memory_order_acquire) != 0;
  }

  // --- The consumer's end.

  // Returns true if Peek would find nothing. Relaxed: it takes nothing from the ring, and Peek looks again.
  [[nodiscard]] bool IsEmpty() const {
    return index_ == known_tail_ && index_ == Word(kTailAt).load(std::memory_order_relaxed);
  }
  enum class Look { kEmpty, kMessage, kNonsense };
  Look Peek(Descriptor* descriptor) {
    if (index_ == known_tail_) {
      const uint64_t tail = Word(kTailAt).load(std::memory_order_acquire);
      if (index_ == tail) return Look::kEmpty;
      if (tail - index_ > depth_) return Look::kNonsense;
      known_tail_ = tail;
    }
    const uint64_t at = DescriptorAt(index_);
    *descriptor = Descriptor::Of(Word(at).load(std::memory_order_relaxed),
                                 Word(at + sizeof(uint64_t)).load(std::memory_order_relaxed));
    return Look::kMessage;
  }
  // Copies the message that Peek described, so that the peer cannot change it any more.
  void Copy(std::span<std::byte> message) { CopyFromShared(message.data(), MessageAt(index_), message.size()); }
  void Advance() { Word(kHeadAt).store(++index_, std::memory_order_release); }
  [[nodiscard]] uint64_t consumed() const { return index_; }
  [[nodiscard]] uint32_t depth() const { return depth_; }

  // Announces that the consumer's end is gone for good. Its later loads see everything that the producer placed before
  // a ConsumerIsGone that returned false. The fence pairs with the one there.
  void Leave() {
    Word(kGoneAt).store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Returns true if the producer is still placing something. REQUIRES: Leave was called. After false, the producer
  // never places again.
  [[nodiscard]] bool IsPlacing() const { return Word(kPlacingAt).load(std::memory_order_seq_cst) != 0; }

  // From here until EndSleep the producer wakes the consumer. The caller then calls FenceSleep, once for several rings.
  // After that it looks into each ring once more before it sleeps or parks.
  void BeginSleep() { Word(kSleepingAt).store(1, std::memory_order_relaxed); }
  void EndSleep() { Word(kSleepingAt).store(0, std::memory_order_relaxed); }
  // Orders the flags before the looks. Pairs with the fence in Publish.
  static void FenceSleep() { std::atomic_thread_fence(std::memory_order_seq_cst); }

 private:
  static constexpr uint64_t kTailAt = 0;
  static constexpr uint64_t kHeadAt = kCacheLine;
  static constexpr uint64_t kGoneAt = kHeadAt + sizeof(uint64_t);  // Beside `head`: the consumer writes both.
  static constexpr uint64_t kSleepingAt = 2 * kCacheLine;
  // Only the producer writes it. The consumer reads it only at the end.
  static constexpr uint64_t kPlacingAt = 3 * kCacheLine;
  static constexpr uint64_t kHeaderBytes = 4 * kCacheLine;

  [[nodiscard]] std::atomic_ref<uint64_t> Word(uint64_t at) const {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory_ + at));
  }
  [[nodiscard]] uint64_t DescriptorAt(uint64_t index) const {
    return kHeaderBytes + (index & mask_) * sizeof(Descriptor);
  }
  [[nodiscard]] std::byte* MessageAt(uint64_t index) const {
    return memory_ + kHeaderBytes + (mask_ + 1) * sizeof(Descriptor) + (index & mask_) * kSendBytesMax;
  }

  std::byte* memory_ = nullptr;
  uint64_t mask_ = 0;
  uint32_t depth_ = 0;
  // The next place to fill or to look at. Private to this end, and never read back from shared memory.
  uint64_t index_ = 0;
  uint64_t known_tail_ = 0;  // Consumer only.
};

}  // namespace erda::fabric::shm
