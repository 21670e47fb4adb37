// The doorbell of one channel: the Unix socket on which an end wakes its peer. The end of the socket tells that the
// peer is gone. Only the thread of the channel's queue calls it.
#pragma once

#include <cstdint>
#include <utility>

#include "base/unique_fd.h"
#include "fabric/shm/socket.h"

namespace erda::fabric::shm {

class Doorbell {
 public:
  explicit Doorbell(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Wakes the peer. Returns false if the kernel has no room for that now; then the caller must ring again.
  [[nodiscard]] bool Ring() { return RingDoorbell(fd()); }
  // Takes the rings of the peer, and notices its end.
  void Hear() { peer_is_gone_ = !HearDoorbell(fd(), &heard_); }
  // Returns the number of rings that Hear has taken.
  [[nodiscard]] uint64_t heard() const { return heard_; }
  // Returns true if Hear found the end of the socket. The ring of messages may still hold some from before.
  [[nodiscard]] bool peer_is_gone() const { return peer_is_gone_; }
  // Tells the peer that this end is gone. This end still hears the peer.
  void HangUp() { shm::HangUp(fd()); }

 private:
  UniqueFd socket_;
  uint64_t heard_ = 0;
  bool peer_is_gone_ = false;
};

}  // namespace erda::fabric::shm
