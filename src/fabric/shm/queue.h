// The queue that receives the completions of its shm channels. A Poll looks into the rings of the channels. A Wait
// sleeps in epoll, on their sockets.
//
// PARKING. A Poll looks into the ring of each channel that was active lately, so these channels need no system call.
// The queue parks a channel that stays silent while others talk. It leaves the sleeping flag in the channel's ring set,
// and stops looking into the ring. The peer's next message then rings the doorbell, which the queue hears by epoll. So
// a Poll costs time for the active channels, and not for all connected ones. No peer can keep another from being heard:
// each ring and each socket belongs to two ends alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/event_fd.h"
#include "base/fifo.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/shm/socket_pace.h"

namespace erda::fabric::shm {

class ShmChannel;

// The queue and its channels belong to one thread. Other threads may call only Wake.
class ShmQueue final : public CompletionQueue {
 public:
  // The queue parks a channel after this number of looks found its ring empty. Only a Poll that had other messages
  // counts as a look: a queue without work sleeps.
  static constexpr uint32_t kBusyLooksPerPark = 256;

  // The queue's notes about one of its channels. The channel keeps them, and sets `heard`.
  struct Notes {
    bool asks = false;       // The channel waits for the answer of its peer.
    bool parked = false;     // The queue does not look into the ring. The peer rings the doorbell for its next message.
    bool heard = true;       // The channel received something, or was unparked, since silent channels were last parked.
    bool owes_ring = false;  // The peer sleeps, and the doorbell could not be rung yet.
  };

  static Result<std::unique_ptr<ShmQueue>> Create();

  size_t Poll(std::span<Completion> out) override;
  void Wait(std::chrono::nanoseconds timeout) override;
  bool Arm(std::chrono::nanoseconds* at_most) override;
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  void Disarm() override;
  void Wake() override;

  // Returns the number of channels that a Poll looks at.
  [[nodiscard]] size_t polled() const { return polled_.size(); }

  // The queue polls a channel from Add to Remove. The fabric and the listener call Add, for a new channel. The channel
  // calls the rest.
  Status Add(ShmChannel* channel);
  void Remove(ShmChannel* channel);
  // Hears the channel's socket no more. REQUIRES: the socket is open. A child of a fork may hold another copy of it,
  // which would keep it in the set after it was closed.
  void Unwatch(ShmChannel* channel);
  // Looks into the channel's ring again, if it is parked.
  void Unpark(ShmChannel* channel);
  // Notes that the channel's peer must be rung. A later Poll does so, and every wait longer than a moment does so
  // first.
  void OweRing(ShmChannel* channel);
  void Complete(const Completion& completion) { ready_.push_back(completion); }
  // Completes the connecting. Ends the wait for an answer.
  void CompleteConnected(ShmChannel* channel);
  // Drops the completions of a channel that are not polled yet.
  void Forget(const ShmChannel* channel);

 private:
  ShmQueue(EventFd wake, UniqueFd epoll) : wake_(std::move(wake)), epoll_(std::move(epoll)) {}
  // Takes completions that did not come through a ring.
  size_t TakeReady(std::span<Completion> out);
  [[nodiscard]] bool SomethingToPoll();
  // Waits for the sockets, up to the timeout, and hears them. Returns true if Wake was called since wake_ was last
  // drained. A Poll does not drain wake_, so that the next Wait still returns at once.
  bool HearSockets(std::chrono::nanoseconds timeout);
  void EndSleep();
  template <class Which>
  void AskForRings(const Which& which);
  [[gnu::noinline]] void CountLook(size_t found, size_t room);
  [[gnu::noinline]] void ParkSilent();
  [[gnu::noinline]] void RingAgain();
  void EndAsking(ShmChannel* channel);

  EventFd wake_;
  UniqueFd epoll_;
  std::vector<ShmChannel*> polled_;  // All channels that are not parked.
  std::vector<ShmChannel*> owing_;   // All channels that owe a ring.
  Fifo<Completion> ready_;
  std::deque<std::vector<std::byte>> inbox_;  // Messages that the last Poll gave out.
  size_t first_ = 0;                          // The channel that is polled first; it changes, for fairness.
  SocketPace pace_;
  uint32_t busy_looks_ = 0;  // Polls since ParkSilent that looked into each polled ring and found something.
};

}  // namespace erda::fabric::shm
