// Hostile clients that send all kinds of inputs to a server, and count the answers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "e2e/raw_peer.h"

namespace erda {

enum class Input : uint8_t {
  kSpoiltRequest,   // A good request but for one number.
  kRandomRequest,   // A request of random bytes.
  kWrongPlace,      // Commits, delegated puts and chunks given back, at random addresses, heads and versions.
  kWrongMessage,    // A message for a slot that does not exist, or one that is no request.
  kChangedRequest,  // A request whose bytes change while the server handles it.
  kFlood,           // Requests in all slots again and again, without taking the answers.
  // Takes a reservation or a chunk, writes a part of it or garbage, and leaves.
  kStop,
  kRingNonsense,  // Nonsense in the memory that both ends of a shm channel share.
  kHello,         // A hello that is spoilt, cut off, or of something else.
  kProof,         // A proof that is wrong, of another client, or used before.
  kSocket,        // Garbage or descriptors on the socket, silence, hanging up.
  kReconnect,     // A good connection that ends at once.
  kCount
};
inline constexpr auto kInputs = static_cast<size_t>(Input::kCount);
inline constexpr std::array<const char*, kInputs> kInputNames = {
    "requests with one wrong number",
    "requests of random bytes",
    "addresses, heads and versions at random",
    "messages for no slot, or that are no requests",
    "requests that change while they are served",
    "floods: all slots, and again, answers not taken",
    "reserved, half written or garbage, and left",
    "nonsense in the rings of the channel",
    "hellos: spoilt, cut off, of something else",
    "proofs: wrong, another's, used before",
    "garbage, descriptors or silence on the socket",
    "connects and leaves at once",
};

// The number of inputs of a kind, and of their outcomes.
struct Tally {
  uint64_t sent = 0;
  uint64_t answered = 0;  // answered like any request
  uint64_t refused = 0;   // answered with an error, or not let in
  uint64_t closed = 0;    // the server ended the channel
  uint64_t left = 0;      // the client waited for no answer

  Tally& operator+=(const Tally& other);
};
using Tallies = std::array<Tally, kInputs>;

class StormClient {
 public:
  // address: of shm, of a server with two shards. token: one that may write.
  StormClient(std::string address, std::string token, uint64_t seed);

  // Sends one or more inputs of this kind.
  void Send(Input input);
  [[nodiscard]] const Tallies& tallies() const { return tallies_; }
  [[nodiscard]] uint64_t sent() const;

 private:
  enum class Came { kAnswer, kError, kClosed, kLeft };

  [[nodiscard]] format::HelloRequest Hello();
  // Returns one of few keys, so that they do not fill the pool. The key belongs to the connected shard.
  [[nodiscard]] std::string Key();
  // Returns a hello with a proof for the challenge that it gets, or nullopt without a challenge.
  [[nodiscard]] std::optional<format::HelloRequest> Proved(std::string_view token, uint32_t slots = RawPeer::kSlots);
  // Connects peer_ if it is not connected. Returns false if the server does not let it in.
  bool Enter();
  void Count(Came came);
  // Counts the answer to the input that was just sent.
  void CountAnswer();
  // Posts into the first slot.
  void Post(const format::Request& request, std::string_view rest);
  [[nodiscard]] format::Request Sound(std::string* rest);

  void SendSpoilt();
  void SendRandom();
  void SendWrongPlace();
  void SendWrongMessage();
  void SendChanged();
  void SendFlood();
  void Stop();
  void WriteRing();
  void SayHello();
  void Prove();
  void UseSocket();
  void Reconnect();

  const std::string address_;
  const std::string token_;
  Random random_;
  std::unique_ptr<RawPeer> peer_;
  std::optional<format::HelloRequest> used_;  // a correct proof that has been used
  format::HelloReply said_{};                 // The server's answer to it. The peer may have been cut off since.
  Tallies tallies_{};
  Tally* tally_ = nullptr;  // the tally of the present kind
};

}  // namespace erda
