// Finds misuse of a client: two threads at once, a call that waits inside a callback, a client that was made before a
// fork. docs/threads.md, "Misuse", says what is found for certain.
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

  // What a call, or the end of the client, would be now.
  [[nodiscard]] Misuse Find() const noexcept;
  // A message for each kind; needs no memory.
  [[nodiscard]] static const char* Describe(Misuse misuse) noexcept;
  // kInvalidArgument and what was wrong. Without memory for it, the code alone.
  [[nodiscard, gnu::cold]] Status Refusal() const noexcept;
  // The same on stderr, for calls that return no status: once for each client.
  void Complain(const char* call) noexcept;

 private:
  friend class Turn;
  friend class NestedTurn;
  using Thread = uintptr_t;
  static constexpr Thread kNobody = 0;
  // Two calls ran at once, and nothing is known of the client's state. It stays so.
  static constexpr Thread kBroken = 1;
  // One instruction, where pthread_self is a call.
  static Thread Self() noexcept { return reinterpret_cast<Thread>(__builtin_thread_pointer()); }
  [[gnu::cold]] void Break() noexcept;

  // Only a hint: relaxed, and not read and written in one step, which would cost a get more than all the rest of this.
  // It orders nothing. Callers that hand a client over order that themselves.
  std::atomic<Thread> caller_{kNobody};
  std::atomic<bool> complained_{false};
  const Birthplace birthplace_;
};

// For as long as a call runs that may wait. Always inlined: the calls would cost more than the rest.
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
    // Else another thread came in between the load and the store of Turn(): its store was the later one.
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

// For a call that does not wait: it may come from a callback, too.
class NestedTurn {
 public:
  explicit NestedTurn(Turns& turns) noexcept
      : turn_(turns),
        is_mine_(turn_.is_mine() ||
                 (turns.caller_.load(std::memory_order_relaxed) == Turns::Self() && !turns.birthplace_.forked())) {}
  [[nodiscard]] bool is_mine() const noexcept { return is_mine_; }

 private:
  const Turn turn_;
  const bool is_mine_;
};

}  // namespace erda::client
