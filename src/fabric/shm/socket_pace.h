// Decides at which Polls a queue of the shm fabric hears the sockets of its channels. Asking the kernel in each Poll
// would cost too much.
#pragma once

#include <cstddef>
#include <cstdint>

namespace erda::fabric::shm {

// Only the thread of the queue calls it.
class SocketPace {
 public:
  // The queue notices a peer that is gone after at most this number of empty Polls, or of other Polls.
  static constexpr uint32_t kEmptyPolls = 256;
  static constexpr uint32_t kBusyPolls = 4096;
  // The queue hears a parked peer after at most this number of Polls with work.
  static constexpr uint32_t kBusyPollsParked = 64;

  // Returns true if the next Poll must hear the sockets.
  [[nodiscard]] bool is_due() const { return asking_ > 0 || polls_ >= kBusyPolls; }
  // A Poll has heard the sockets.
  void CountHearing() { polls_ = 0; }
  void CountPoll(bool found_something) { polls_ += found_something ? busy_poll_weight_ : kBusyPolls / kEmptyPolls; }

  // Counts channels that wait for the answer of their peer. It comes over the socket, so each Poll hears that.
  void BeginAsking() { ++asking_; }
  void EndAsking() { --asking_; }

  [[nodiscard]] size_t parked() const { return parked_; }
  void CountParked() {
    ++parked_;
    busy_poll_weight_ = kBusyPolls / kBusyPollsParked;
  }
  void CountUnparked() {
    if (--parked_ == 0) busy_poll_weight_ = 1;
  }

 private:
  uint32_t asking_ = 0;
  uint32_t polls_ = 0;  // Polls since CountHearing, each by its weight.
  // The weight of a Poll that found something. It is larger if channels are parked.
  uint32_t busy_poll_weight_ = 1;
  size_t parked_ = 0;  // The number of parked channels.
};

}  // namespace erda::fabric::shm
