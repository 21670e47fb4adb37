// The gate decides which clients and mirrors may connect. A server with a token file demands from each connection the
// proof that its client knows one of the tokens (docs/security.md, "Tokens"). One gate serves all addresses of a
// server, from their threads.
//
// The gate stores nothing about a client that asks, so nobody can fill it up. A challenge holds the time when it was
// made. The gate computes its nonce again from that time and a secret that only this start of the server has. It
// remembers each challenge that was answered correctly while the answer counts, so that each can be answered once.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/token_file.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "server/sessions/events.h"

namespace erda::server {

// Stands for a token and its rights while the server runs; 0: the server demanded no token.
using TokenId = uint64_t;
using TokenIds = std::set<TokenId>;

// The token and the rights with which a client or a mirror was let in.
struct Admission {
  TokenId token = 0;
  TokenRights rights = TokenRights::kWrite;
  // For the proof that the server knows the token, too. Empty if no token was demanded.
  std::string secret;
  format::Nonce nonce{};
};

class Gate {
 public:
  // How long a client may answer a challenge, and how many answers the gate remembers.
  static constexpr std::chrono::seconds kAnswerTime{10};
  static constexpr size_t kAnswersMax = size_t{1} << 16;

  // Reads the token file.
  static Result<std::unique_ptr<Gate>> Open(std::string path, const Clock& clock);

  // One of its three members is set.
  struct Verdict {
    std::optional<Admission> admission;
    std::optional<format::HelloChallenge> challenge;
    Status refusal;
  };
  [[nodiscard]] Verdict Judge(const format::HelloRequest& hello);

  // Reads the file again if it has changed. While that fails, the gate lets no new client in, and connected clients
  // stay. Returns true if the tokens are not the same as before.
  bool Refresh();
  // Any thread: reads this file now, and watches it from now on. An error changes nothing.
  Status Reload(const std::string& path);
  // Returns the tokens that count now.
  [[nodiscard]] std::shared_ptr<const TokenIds> ids() const { return State().ids; }

 private:
  struct Known {
    Token token;
    TokenId id = 0;
  };
  // The contents of the file at the last look.
  struct Tokens {
    std::shared_ptr<const std::vector<Known>> known;
    std::shared_ptr<const TokenIds> ids;
    Status readable;  // An error if the file could not be read; the tokens are then the earlier ones.
  };

  Gate(std::string path, const Clock& clock);
  [[nodiscard]] Tokens State() const {
    const std::scoped_lock lock(mutex_);
    return tokens_;
  }
  void Fail(Status status);
  [[nodiscard]] Tokens Take(std::vector<Token> tokens) const;
  [[nodiscard]] Status Remember(const format::HelloRequest& hello, uint32_t now);
  [[nodiscard]] format::Nonce NonceOf(uint64_t challenge, const format::HelloRequest& hello) const;
  [[nodiscard]] format::HelloChallenge Challenge(const format::HelloRequest& hello) const;
  [[nodiscard]] uint32_t Seconds() const;

  const Clock& clock_;
  const Nanoseconds begin_;
  Digest secret_;
  std::mutex file_mutex_;  // Protects the members below; reading a file may take long.
  std::string path_;
  struct stat seen_ {};       // State of the file that was read.
  mutable std::mutex mutex_;  // Protects the members below; nothing is computed under it.
  Tokens tokens_;
  std::set<std::tuple<uint64_t, uint64_t, uint16_t>> answered_;  // Challenge, client, shard.
};

// Returns the private data of a Reject: the reason of the refusal.
[[nodiscard]] format::HelloRefusal Refusal(Code code, std::string_view message);

// A client that may connect, with its hello and its admission.
struct Guest {
  format::HelloRequest hello{};
  Admission admission;
};
// Checks a client that asks to connect. Returns nullopt after it has refused the client with a reason, or has asked it
// for a proof. If `gate` is null, every client that speaks the protocol may connect. `tell` hears of each refusal and
// its reason, but not of a question for a proof.
// `mirrored`: mirrors may connect, too.
std::optional<Guest> Greet(fabric::Incoming& incoming, Gate* gate, uint32_t shards, const TellEvent& tell = {},
                           bool mirrored = false);

}  // namespace erda::server
