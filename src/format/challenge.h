// The refusals of a server at the end that connects. It proves that it knows the token (proof.h). Clients and mirrors
// use it.
//
// Owns the answer to the last challenge. One thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "erda/status.h"
#include "format/hello.h"

namespace erda::format {

class ChallengeAnswer {
 public:
  // Begins a connection without an answer.
  void Forget() { proof_.reset(); }
  // Returns true if the server refused with a challenge. Returns false if it keeps asking: then the caller gives up.
  [[nodiscard]] bool IsChallenged(std::span<const std::byte> refusal) const;
  // Answers the challenge with this token from now on. REQUIRES: IsChallenged(refusal).
  void Answer(std::span<const std::byte> refusal, std::string token);
  // Returns the reason that the server gave for its refusal. Returns nullopt if it gave none.
  [[nodiscard]] static std::optional<Status> ReasonOf(std::span<const std::byte> refusal);

  // Completes a request with the answer, if there is one. The other fields are set already.
  void Prove(HelloRequest* hello) const;
  // Returns ok if the server has proved that it knows the token. An end that has a token takes no server that did not
  // ask for it.
  [[nodiscard]] Status CheckServer(const HelloReply& hello, bool has_token) const;

 private:
  // A server's challenge, and the token that answers it.
  struct Proved {
    HelloChallenge challenge{};
    std::string token;
    uint32_t number = 0;  // Of the challenges of this connection.
  };
  std::optional<Proved> proof_;
};

}  // namespace erda::format
