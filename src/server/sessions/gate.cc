#include "server/sessions/gate.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "format/proof.h"

namespace erda::server {

using format::HelloChallenge;
using format::HelloRequest;

namespace {

constexpr uint32_t kSecondsShift = 32;

bool SameFile(const struct stat& a, const struct stat& b) {
  const auto same = [](const timespec& x, const timespec& y) { return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec; };
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mode == b.st_mode &&
         a.st_uid == b.st_uid && same(a.st_mtim, b.st_mtim) && same(a.st_ctim, b.st_ctim);
}

// A mirror reads the whole pool, and its answers decide when the primary answers.
Status CheckRole(format::Role role, TokenRights rights) {
  if (role == format::Role::kMirror && rights != TokenRights::kMirror) {
    return {Code::kPermissionDenied, "this token makes no mirror: its line in the token file needs the word mirror"};
  }
  if (role != format::Role::kMirror && rights == TokenRights::kMirror) {
    return {Code::kPermissionDenied, "this token is for mirrors alone, and lets no client in"};
  }
  return {};
}

}  // namespace

Gate::Gate(std::string path, const Clock& clock) : clock_(clock), begin_(clock.Now()), path_(std::move(path)) {
  FillRandom(std::as_writable_bytes(std::span(secret_)));
}

Result<std::unique_ptr<Gate>> Gate::Open(std::string path, const Clock& clock) {
  std::unique_ptr<Gate> gate(new Gate(std::move(path), clock));
  gate->Refresh();
  if (auto status = gate->State().readable; !status.ok()) return status;
  return gate;
}

bool Gate::Refresh() {
  const std::scoped_lock file_lock(file_mutex_);
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) {
    Fail(ErrnoStatus("cannot look at the token file " + path_));
    return false;
  }
  if (SameFile(now, seen_)) return false;
  auto read = ReadTokenFile(path_);
  if (!read.ok()) {
    Fail(read.status());
    return false;
  }
  seen_ = now;
  Tokens tokens = Take(*std::move(read));
  const std::scoped_lock lock(mutex_);
  std::swap(tokens_, tokens);
  return tokens.ids == nullptr || *tokens.ids != *tokens_.ids;
}

// file_mutex_ orders this with a Refresh by the thread of an address. So a Refresh looks at the old file before this,
// or at the new file after it.
Status Gate::Reload(const std::string& path) {
  const std::scoped_lock file_lock(file_mutex_);
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return ErrnoStatus("cannot look at the token file " + path);
  auto read = ReadTokenFile(path);
  if (!read.ok()) return read.status();
  Tokens tokens = Take(*std::move(read));
  path_ = path;
  seen_ = now;
  const std::scoped_lock lock(mutex_);
  std::swap(tokens_, tokens);
  return {};
}

// The next Refresh tries again: the file may not be the cause of the error.
void Gate::Fail(Status status) {
  seen_ = {};
  const std::scoped_lock lock(mutex_);
  tokens_.readable = std::move(status);
}

Gate::Tokens Gate::Take(std::vector<Token> tokens) const {
  auto known = std::make_shared<std::vector<Known>>();
  auto ids = std::make_shared<TokenIds>();
  for (Token& token : tokens) {
    const Digest digest = HmacSha256(BytesOf(secret_), {BytesOf(token.rights), AsBytes(token.secret)});
    TokenId id = 0;
    std::memcpy(&id, digest.data(), sizeof(id));
    id |= 1;  // 0 is not the id of a token
    ids->insert(id);
    known->push_back({std::move(token), id});
  }
  return {std::move(known), std::move(ids), Status()};
}

// Counts from 1 on, so that no challenge is 0.
uint32_t Gate::Seconds() const {
  return 1 + static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - begin_).count());
}

format::Nonce Gate::NonceOf(uint64_t challenge, const HelloRequest& hello) const {
  return HmacSha256(BytesOf(secret_), {BytesOf(challenge), BytesOf(hello.client_id), BytesOf(hello.shard)});
}

HelloChallenge Gate::Challenge(const HelloRequest& hello) const {
  uint32_t number = 0;
  FillRandom(std::as_writable_bytes(std::span(&number, 1)));
  HelloChallenge challenge{};
  challenge.magic = format::kHelloMagic;
  challenge.protocol_version = format::kProtocolVersion;
  challenge.code = static_cast<uint8_t>(Code::kPermissionDenied);
  challenge.is_challenge = 1;
  challenge.challenge = uint64_t{Seconds()} << kSecondsShift | number;
  challenge.nonce = NonceOf(challenge.challenge, hello);
  return challenge;
}

Gate::Verdict Gate::Judge(const HelloRequest& hello) {
  Verdict verdict;
  const uint32_t now = Seconds();
  const auto made = static_cast<uint32_t>(hello.challenge >> kSecondsShift);
  if (made == 0 || made > now || now - made > kAnswerTime.count()) {
    verdict.challenge = Challenge(hello);
    return verdict;
  }
  const Tokens tokens = State();
  const format::Nonce nonce = NonceOf(hello.challenge, hello);
  const Known* known = nullptr;
  for (const Known& each : *tokens.known) {  // all of them, so that the time reveals nothing
    if (format::SameProof(format::ClientProof(each.token.secret, nonce, hello), hello.proof)) known = &each;
  }
  if (known == nullptr) {
    verdict.refusal = {Code::kPermissionDenied, "the server does not know this token"};
  } else if (!tokens.readable.ok()) {
    verdict.refusal = {Code::kPermissionDenied, "the server cannot read its tokens now: nobody is let in"};
  } else if (verdict.refusal = CheckRole(hello.role, known->token.rights); verdict.refusal.ok()) {
    verdict.refusal = Remember(hello, now);
  }
  if (verdict.refusal.ok()) {
    verdict.admission = {known->id, known->token.rights, known->token.secret, nonce};
  }
  return verdict;
}

// Remembers that this challenge was answered correctly, which can happen once. Forgets challenges that are too old to
// be answered.
Status Gate::Remember(const HelloRequest& hello, uint32_t now) {
  const auto age = static_cast<uint64_t>(kAnswerTime.count());
  const uint64_t oldest = now > age ? now - age : 0;
  const std::scoped_lock lock(mutex_);
  answered_.erase(answered_.begin(), answered_.lower_bound({oldest << kSecondsShift, 0, 0}));
  if (answered_.size() >= kAnswersMax) {
    return {Code::kResourceExhausted, "too many clients connect at once: try again"};
  }
  if (!answered_.emplace(hello.challenge, hello.client_id, hello.shard).second) {
    return {Code::kPermissionDenied, "this proof was used before"};
  }
  return {};
}

format::HelloRefusal Refusal(Code code, std::string_view message) {
  static_assert(sizeof(format::HelloRefusal) <= fabric::kRejectDataMax);
  format::HelloRefusal refusal{};
  refusal.magic = format::kHelloMagic;
  refusal.protocol_version = format::kProtocolVersion;
  refusal.code = static_cast<uint8_t>(code);
  const size_t n = std::min(message.size(), refusal.message.size() - 1);
  std::copy_n(message.begin(), n, refusal.message.begin());
  return refusal;
}

std::optional<Guest> Greet(fabric::Incoming& incoming, Gate* gate, uint32_t shards, const TellEvent& tell,
                           bool mirrored) {
  Guest guest;
  HelloRequest& hello = guest.hello;
  const auto refuse = [&](Code code, std::string_view message) {
    if (tell) tell(NameOfClient(hello.client_id, incoming.peer_name()) + ": refused: " + std::string(message));
    incoming.Reject(BytesOf(Refusal(code, message)));
    return std::nullopt;
  };
  // A hello of another format version has this part in common.
  const auto said = incoming.peer_data();
  std::ranges::copy(said.first(std::min(said.size(), sizeof(hello))),
                    std::as_writable_bytes(std::span(&hello, 1)).begin());
  if (hello.magic != format::kHelloMagic) {
    return refuse(Code::kInvalidArgument, "this is an Erda server, and that was no Erda client");
  }
  if (hello.protocol_version != format::kProtocolVersion) {
    return refuse(Code::kInvalidArgument, "the server speaks protocol version " +
                                              std::to_string(format::kProtocolVersion) + ", the client " +
                                              std::to_string(hello.protocol_version));
  }
  if (said.size() < sizeof(hello)) return refuse(Code::kInvalidArgument, "that was only a part of a hello");
  if (gate != nullptr) {
    auto verdict = gate->Judge(hello);
    if (verdict.challenge) {
      incoming.Reject(BytesOf(*verdict.challenge));
      return std::nullopt;
    }
    if (!verdict.admission) return refuse(verdict.refusal.code(), verdict.refusal.message());
    guest.admission = *std::move(verdict.admission);
  }
  if (hello.role == format::Role::kMirror && !mirrored) {
    return refuse(Code::kInvalidArgument, "the pool of this server takes no mirrors");
  }
  if (hello.role != format::Role::kMirror && hello.role != format::Role::kClient) {
    return refuse(Code::kInvalidArgument, "the peer has a role that this server does not know");
  }
  if (hello.shard >= shards) return refuse(Code::kInvalidArgument, "there is no such shard");
  return guest;
}

}  // namespace erda::server
