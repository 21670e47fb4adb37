#include "client/turn.h"

#include <cstdio>
#include <new>

namespace erda::client {

Turns::Misuse Turns::Find() const noexcept {
  if (birthplace_.forked()) return Misuse::kForked;
  const Thread caller = caller_.load(std::memory_order_relaxed);
  if (caller == kNobody) return Misuse::kNone;
  if (caller == kBroken) return Misuse::kOverlapped;
  return caller == Self() ? Misuse::kInCallback : Misuse::kOtherThread;
}

const char* Turns::Describe(Misuse misuse) noexcept {
  switch (misuse) {
    case Misuse::kForked:
      return "this client was made before a fork, and belongs to the parent process: connect in the child";
    case Misuse::kInCallback:
      return "a callback of this client must not poll, drain, wait or destroy it: start an asynchronous operation, or "
             "wait after the callback";
    case Misuse::kOverlapped:
      return "two threads were in calls of this client at once, and its state is unknown: use a client for each thread";
    case Misuse::kOtherThread:
    case Misuse::kNone:  // the call of the other thread has ended since
      break;
  }
  return "another thread is in a call of this client: use a client for each thread, or a lock";
}

Status Turns::Refusal() const noexcept try {
  return {Code::kInvalidArgument, Describe(Find())};
} catch (const std::bad_alloc&) {
  return Status(Code::kInvalidArgument);
}

void Turns::Complain(const char* call) noexcept {
  if (complained_.exchange(true)) return;
  std::fprintf(stderr, "erda: %s: %s\n", call, Describe(Find()));
}

void Turns::Break() noexcept {
  caller_.store(kBroken, std::memory_order_relaxed);
  Complain("Client");
}

}  // namespace erda::client
