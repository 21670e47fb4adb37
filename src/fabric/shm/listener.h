// A listening socket of the shm fabric, and the peers that ask there.
//
// Owns the socket, its name in the file system, and the sockets of peers that have not asked yet. Shares its beacon
// with the channels that it makes. Requires: the memory maps outlive it. One thread calls it, except Wake, which any
// thread may call.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_fd.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/shm/beacon.h"
#include "fabric/shm/memory_map.h"
#include "fabric/shm/socket.h"

namespace erda::fabric::shm {

// Puts the private data and the offered regions of an end into its greeting, and appends their descriptors to *fds.
Status FillGreeting(const ChannelOptions& options, size_t data_max, Greeting* greeting, std::vector<int>* fds);

class ShmListener final : public Listener {
 public:
  // The listener drops a peer that connects and does not ask within this time.
  static constexpr std::chrono::seconds kSilentMost{5};

  static Result<std::unique_ptr<Listener>> Create(std::string_view address, MemoryMaps* maps,
                                                  const Clock& clock = SteadyClock::Instance());
  ~ShmListener() override;

  [[nodiscard]] const std::string& address() const override { return address_; }
  Status LetAsk(Askers askers) override;
  std::unique_ptr<Incoming> Poll() override;
  void Wait(std::chrono::nanoseconds timeout) override;
  void Wake() override;

 private:
  ShmListener(std::string address, std::string path, UniqueFd socket, EventFd doorbell, MemoryMaps* maps,
              std::shared_ptr<Beacon> beacon, const Clock& clock);
  void AcceptSockets();
  // Returns the time until the oldest silent peer is dropped, but at most `timeout`.
  [[nodiscard]] std::chrono::nanoseconds SilentFor(std::chrono::nanoseconds timeout) const;

  const std::string address_;
  const std::string path_;
  uint64_t inode_ = 0;
  UniqueFd socket_;
  EventFd doorbell_;
  MemoryMaps* const maps_;
  const std::shared_ptr<Beacon> beacon_;
  bool exhausted_ = false;  // There was no descriptor left to accept with.
  struct Silent {
    UniqueFd socket;
    Nanoseconds since{0};
  };
  const Clock& clock_;
  std::list<Silent> silent_;  // Peers that connected and have not asked yet; the oldest first.
};

}  // namespace erda::fabric::shm
