// The Unix socket beside a channel: connects, hands over descriptors once, and tells by its end that the peer is gone.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/fabric.h"

namespace erda::fabric::shm {

// What either end says when a channel is made. The descriptors that go with it, in order: of an asker the channel's
// memory, of an accepter its beacon; then for both one for each offered region.
struct Greeting {
  static constexpr uint64_t kMagic = 0x32306d6873616472;  // "rdashm02"
  enum Kind : uint32_t { kAsk = 1, kAccept = 2, kReject = 3 };

  uint64_t magic = kMagic;
  uint32_t kind = kAsk;
  uint32_t message_depth = 0;
  uint32_t regions = 0;
  uint32_t data_bytes = 0;
  std::array<uint64_t, kOfferedRegionsMax> region_sizes{};
  std::array<uint32_t, kOfferedRegionsMax> region_access{};
  std::array<std::byte, 200> data{};

  [[nodiscard]] std::span<const std::byte> private_data() const { return std::span(data).first(data_bytes); }
};
static_assert(sizeof(Greeting::data) >= kAcceptDataMax && sizeof(Greeting::data) >= kConnectDataMax);

// The path of "shm:/path". kInvalidArgument if it is none, or too long for a socket.
Result<std::string> PathOf(std::string_view address);

Result<UniqueFd> ConnectTo(const std::string& path);
// Takes the place of a socket that nobody listens on any more. kUnavailable if somebody does, or if another process
// that starts holds the lock of this path for kStartMost. The lock is the file `path`.lock, which exists only in the
// meantime.
inline constexpr std::chrono::seconds kStartMost{2};
Result<UniqueFd> ListenOn(const std::string& path);

// Who may connect there: its mode.
Status SetAskers(const std::string& path, Askers askers);
// The effective user of the process that connected, when it did, against this one's.
PeerUser UserOf(int socket);

Status SendGreeting(int socket, const Greeting& greeting, std::span<const int> fds);
// kUnavailable: the peer hung up. kTimeout: nothing there yet. kInvalidArgument: not a greeting.
Status ReceiveGreeting(int socket, Greeting* greeting, std::vector<UniqueFd>* fds);

// After the greetings the socket is a doorbell: a byte wakes the peer, the end of the socket says that it is gone.
// False: the kernel has no room for the byte now. The peer is not told, and it must be tried again.
bool RingDoorbell(int socket);
// Takes all rings, and adds their number to `rings` if that is given; false if the peer is gone, or has hung up.
bool HearDoorbell(int socket, uint64_t* rings = nullptr);
// The peer hears that this end is gone, while this end still hears of the peer.
void HangUp(int socket);

}  // namespace erda::fabric::shm
