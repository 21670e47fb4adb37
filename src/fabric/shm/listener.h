// A listening socket of the shm fabric, and the peers that ask there.
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

// Puts the private data and the offered regions of an end into its greeting, and their descriptors behind fds.
Status FillGreeting(const ChannelOptions& options, size_t data_max, Greeting* greeting, std::vector<int>* fds);

class ShmListener final : public Listener {
 public:
  // Who connects and does not ask is dropped after so long.
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
  // Until the oldest of them is dropped, but not longer than `timeout`.
  [[nodiscard]] std::chrono::nanoseconds SilentFor(std::chrono::nanoseconds timeout) const;

  const std::string address_;
  const std::string path_;
  uint64_t inode_ = 0;
  UniqueFd socket_;
  EventFd doorbell_;
  MemoryMaps* const maps_;
  const std::shared_ptr<Beacon> beacon_;
  bool exhausted_ = false;  // no descriptor was left to accept with
  struct Silent {
    UniqueFd socket;
    Nanoseconds since{0};
  };
  const Clock& clock_;
  std::list<Silent> silent_;  // connected, but have not asked yet; oldest first
};

}  // namespace erda::fabric::shm
