// Who is let in. A server with a token file demands of each connection the proof that its client knows one of the
// tokens (docs/security.md, "Tokens"). One gate serves all of a server's addresses, from their threads.
//
// It keeps nothing of who asks: a challenge says when it was made, and its nonce is computed anew from that and a
// secret that only this start of the server has. So nobody can fill it up. What it keeps is which challenges were
// answered rightly, as long as they count, so that each is answered once.
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
#include "format/messages.h"
#include "server/events.h"

namespace erda::server {

// Stands for a token and its rights, as long as the server runs; 0: none was asked for.
using TokenId = uint64_t;
using TokenIds = std::set<TokenId>;

// What a client was let in with.
struct Admission {
  TokenId token = 0;
  bool read_only = false;
  // For the proof that the server knows the token, too; of none, empty.
  std::string secret;
  format::Nonce nonce{};
};

class Gate {
 public:
  // A challenge can be answered for so long, and so many answers are remembered.
  static constexpr std::chrono::seconds kAnswerTime{10};
  static constexpr size_t kAnswersMax = size_t{1} << 16;

  // Reads the tokens.
  static Result<std::unique_ptr<Gate>> Open(std::string path, const Clock& clock);

  // One of the three.
  struct Verdict {
    std::optional<Admission> admission;
    std::optional<format::HelloChallenge> challenge;
    Status refusal;
  };
  [[nodiscard]] Verdict Judge(const format::HelloRequest& hello);

  // Reads the file again if it has changed. As long as that fails nobody new is let in, and who was in stays. True:
  // there are other tokens than before.
  bool Refresh();
  // Reads this file now, and looks at it from here on. An error changes nothing. From any thread.
  Status Reload(const std::string& path);
  // Those that count now.
  [[nodiscard]] std::shared_ptr<const TokenIds> ids() const { return State().ids; }

 private:
  struct Known {
    Token token;
    TokenId id = 0;
  };
  // Of the file, when it was read last.
  struct Tokens {
    std::shared_ptr<const std::vector<Known>> known;
    std::shared_ptr<const TokenIds> ids;
    Status readable;  // whether it could be; else they are those of before
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
  std::mutex file_mutex_;  // of what follows; reading a file may take long
  std::string path_;
  struct stat seen_ {};       // of the file that was read
  mutable std::mutex mutex_;  // of what follows; nothing is computed meanwhile
  Tokens tokens_;
  std::set<std::tuple<uint64_t, uint64_t, uint16_t>> answered_;  // challenge, client, shard
};

// The private data of a Reject: why.
[[nodiscard]] format::HelloRefusal Refusal(Code code, std::string_view message);

// Who may come in, what he said, and with what.
struct Guest {
  format::HelloRequest hello{};
  Admission admission;
};
// nullopt: who asks is refused, and told why, or is asked for a proof. gate: none lets in everybody who speaks the
// protocol. tell: is told who is refused, and why; but not of a question for a proof.
std::optional<Guest> Greet(fabric::Incoming& incoming, Gate* gate, uint32_t shards, const TellEvent& tell = {});

}  // namespace erda::server
