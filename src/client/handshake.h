// The handshake of a connection to one shard: what the client says of itself, and whether it takes the server.
//
// Owns the answer to the server's challenge, and what the server said last when the client took it. It knows no
// channel: the link passes on what the server sent. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/challenge.h"
#include "format/hello.h"

namespace erda::client {

class Handshake {
 public:
  Handshake(std::string address, uint32_t shard, uint64_t client_id)
      : address_(std::move(address)), shard_(shard), client_id_(client_id) {}

  // Begins a handshake in which the client offers memory for this number of replies, or for as many as a server takes.
  void Begin(uint32_t slots_wanted);
  // Returns what the client says when it connects. After a challenge it has the proof that the client knows the token.
  [[nodiscard]] format::HelloRequest Request() const;
  // Returns true if the server refused with a challenge. Returns false if it keeps asking: then the client gives up.
  [[nodiscard]] bool IsChallenged(std::span<const std::byte> refusal) const { return answer_.IsChallenged(refusal); }
  // Answers the challenge with this token in the next Request. REQUIRES: IsChallenged(refusal).
  void Answer(std::span<const std::byte> refusal, std::string token) { answer_.Answer(refusal, std::move(token)); }
  // Returns the reason that the server gave for its refusal. Returns nullopt if it gave none.
  [[nodiscard]] std::optional<Status> ReasonOf(std::span<const std::byte> refusal) const;
  // Takes the server by what it says of itself and the regions that it offers. Otherwise returns why the client does
  // not take it. A client that has a token takes no server that did not ask for it.
  Status Take(std::span<const std::byte> reply, std::span<const fabric::RemoteRegion> offered, bool has_token);

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] uint32_t shard() const { return shard_; }
  [[nodiscard]] uint32_t slots_offered() const { return slots_offered_; }
  // Returns what the last server said that the client took. It stays after the connection.
  [[nodiscard]] const format::HelloReply& hello() const { return hello_; }

 private:
  // Returns ok if the server is one that this client can use.
  [[nodiscard]] Status Check(const format::HelloReply& hello, std::span<const fabric::RemoteRegion> offered,
                             bool has_token) const;

  const std::string address_;
  const uint32_t shard_;
  const uint64_t client_id_;
  uint32_t slots_offered_ = 0;
  format::ChallengeAnswer answer_;
  format::HelloReply hello_{};
};

}  // namespace erda::client
