// Hostile clients that send whatever they come to at a server, and what came back of it.
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
  kSpoiltRequest,   // in order, but for one number
  kRandomRequest,   // of random bytes
  kWrongPlace,      // commits, delegated puts and pieces given back, at random addresses, heads and versions
  kWrongMessage,    // for slots that it does not have, or no request at all
  kChangedRequest,  // its bytes are changed while it is served
  kFlood,           // all slots at once, and again, without a look at the answers
  kStop,            // space or a piece of the log is taken, part of it is written or garbage, and then it leaves
  kRingNonsense,    // in the memory that both ends of a shm channel share
  kHello,           // spoilt, cut off, or of something else
  kProof,           // wrong, another's, or used before
  kSocket,          // garbage on the socket, descriptors with it, silence, hanging up
  kReconnect,       // in order, and away again at once
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

// Of inputs: how many, and what came back.
struct Tally {
  uint64_t sent = 0;
  uint64_t answered = 0;  // as any client
  uint64_t refused = 0;   // with an error, or not let in
  uint64_t closed = 0;    // the channel was ended
  uint64_t left = 0;      // nothing was waited for

  Tally& operator+=(const Tally& other);
};
using Tallies = std::array<Tally, kInputs>;

class StormClient {
 public:
  // address: of shm; of a server of two shards. token: one that may write.
  StormClient(std::string address, std::string token, uint64_t seed);

  // One thing of that kind, which is one input or more.
  void Send(Input input);
  [[nodiscard]] const Tallies& tallies() const { return tallies_; }
  [[nodiscard]] uint64_t sent() const;

 private:
  enum class Came { kAnswer, kError, kClosed, kLeft };

  [[nodiscard]] format::HelloRequest Hello();
  // One of few keys, so that they do not fill the pool; of the shard that it is connected to.
  [[nodiscard]] std::string Key();
  // A hello with a proof for the challenge that it gets; nullopt: it got none.
  [[nodiscard]] std::optional<format::HelloRequest> Proved(std::string_view token, uint32_t slots = RawPeer::kSlots);
  // Makes sure that peer_ is connected; false if it is not let in.
  bool Enter();
  void Count(Came came);
  // The answer to what was sent just now.
  void CountAnswer();
  // To the first slot.
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
  std::optional<format::HelloRequest> used_;  // a proof that was right, once
  format::HelloReply said_{};                 // the server's answer to it; the peer may be cut off since
  Tallies tallies_{};
  Tally* tally_ = nullptr;  // of what is being sent
};

}  // namespace erda
