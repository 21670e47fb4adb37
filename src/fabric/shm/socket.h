// The Unix socket beside a channel. It connects the ends and passes descriptors once. Its end tells that the peer is
// gone.
//
// Owns nothing: the caller owns each descriptor, those that arrive with a greeting included. One thread at a time uses
// a socket: that of the listener, and then that of the channel's queue.
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

// The first message of either end of a channel. Descriptors go with it, in this order. The connecting end sends the
// channel's memory; the accepting end sends its beacon. Then both send one for each offered region.
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

// Returns the path of "shm:/path". Returns kInvalidArgument if it has no such path, or if the path is too long for a
// socket.
Result<std::string> PathOf(std::string_view address);

Result<UniqueFd> ConnectTo(const std::string& path);
// Listens at a path. Replaces a socket at which no server listens any more. Returns kUnavailable if a server listens
// there, or if another starting process holds the lock of this path for kStartMost. The lock is the file `path`.lock,
// which exists only during the start.
inline constexpr std::chrono::seconds kStartMost{2};
Result<UniqueFd> ListenOn(const std::string& path);

// Sets the users that may connect there, by the socket's mode.
Status SetAskers(const std::string& path, Askers askers);
// Compares the effective user of the connected process, as of its connection, with the user of this process.
PeerUser UserOf(int socket);

Status SendGreeting(int socket, const Greeting& greeting, std::span<const int> fds);
// Returns kUnavailable if the peer hung up, kTimeout if nothing has come yet, and kInvalidArgument if the message is no
// greeting.
Status ReceiveGreeting(int socket, Greeting* greeting, std::vector<UniqueFd>* fds);

// Sends a byte that wakes the peer. After the greetings the socket is a doorbell. Returns false if the kernel has no
// room for the byte now. Then the peer was not told, and the caller must try again.
bool RingDoorbell(int socket);
// Takes all rings, and adds their number to *rings unless that is null. Returns false if the peer is gone, or has hung
// up.
bool HearDoorbell(int socket, uint64_t* rings = nullptr);
// Tells the peer that this end is gone. This end still hears the peer.
void HangUp(int socket);

}  // namespace erda::fabric::shm
