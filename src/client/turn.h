// Finds misuse of a client: two threads at once, a call that waits inside a callback, or a client that was made before
// a fork. Some misuse is found for certain: see docs/threads.md, "Misuse".
#pragma once

#include <atomic>
#include <cstdint>

#include "base/birthplace.h"
#include "erda/status.h"

namespace erda::client {

// Which thread is in a call of the client.
class Turns {
 public:
  enum class Misuse : uint8_t { kNone, kForked, kOtherThread, kInCallback, kOverlapped };

  // Returns the misuse that a call, or the end of the client, would be now.
  [[nodiscard]] Misuse Find() const noexcept;
  // Returns a message for each kind. Needs no memory.
  [[nodiscard]] static const char* Describe(Misuse misuse) noexcept;
  // Returns kInvalidArgument with the misuse as the message. Without memory, returns the code alone.
  [[nodiscard, gnu::cold]] Status Refusal() const noexcept;
  // Writes the message to stderr, once for each client, for calls that return no status.
  void Complain(const char* call) noexcept;

 private:
  friend class Turn;
  friend class NestedTurn;
  using Thread = uintptr_t;
  static constexpr Thread kNobody = 0;
  // Two calls ran at once, so the state of the client is unknown. This value stays.
  static constexpr Thread kBroken = 1;
  // One instruction; pthread_self would be a call.
  static Thread Self() noexcept { return reinterpret_cast<Thread>(__builtin_thread_pointer()); }
  [[gnu::cold]] void Break() noexcept;

  // Only a hint. It is relaxed, and a Turn reads and writes it in two steps. One atomic step would cost a get more than
  // all other checks here. It orders nothing. Callers that hand a client to another thread must order that themselves.
  std::atomic<Thread> caller_{kNobody};
  std::atomic<bool> complained_{false};
  const Birthplace birthplace_;
};

// Lives while a call runs that may wait. Always inlined: function calls would cost more than the checks.
class Turn {
 public:
  [[gnu::always_inline]] explicit Turn(Turns& turns) noexcept {
    if (turns.caller_.load(std::memory_order_relaxed) == Turns::kNobody && !turns.birthplace_.forked()) [[likely]] {
      turns.caller_.store(Turns::Self(), std::memory_order_relaxed);
      turns_ = &turns;
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  [[gnu::always_inline]] ~Turn() {
    if (turns_ == nullptr) return;
    // If not, another thread came between the load and the store of Turn(), and stored last.
    if (turns_->caller_.load(std::memory_order_relaxed) == Turns::Self()) [[likely]] {
      turns_->caller_.store(Turns::kNobody, std::memory_order_relaxed);
    } else {
      turns_->Break();
    }
  }
  [[nodiscard]] bool is_mine() const noexcept { return turns_ != nullptr; }

 private:
  Turns* turns_ = nullptr;
};

// For a call that does not wait, and so may come from a callback.
class NestedTurn {
 public:
  [[gnu::always_inline]] explicit NestedTurn(Turns& turns) noexcept
      : turn_(turns),
        is_mine_(turn_.is_mine() ||
                 (turns.caller_.load(std::memory_order_relaxed) == Turns::Self() && !turns.birthplace_.forked())) {}
  [[nodiscard]] bool is_mine() const noexcept { return is_mine_; }
  // Returns true if the call comes from a callback.
  [[nodiscard]] bool is_nested() const noexcept { return !turn_.is_mine(); }

 private:
  const Turn turn_;
  const bool is_mine_;
};

}  // namespace erda::client
