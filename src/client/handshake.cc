#include "client/handshake.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/printable.h"
#include "format/activity.h"
#include "format/durability.h"
#include "format/geometry.h"
#include "format/proof.h"

namespace erda::client {

using format::HelloChallenge;
using format::HelloRefusal;
using format::HelloReply;
using format::HelloRequest;
using format::Placing;

namespace {

// A server sends another challenge if the answer to the first one came too late.
constexpr uint32_t kAnswersMost = 3;

// Returns the challenge, if the server refused with one.
std::optional<HelloChallenge> ChallengeIn(std::span<const std::byte> data) {
  if (data.size() < sizeof(HelloChallenge)) return std::nullopt;
  const auto challenge = LoadAs<HelloChallenge>(data);
  const bool is_one = challenge.magic == format::kHelloMagic && challenge.is_challenge == 1 &&
                      challenge.protocol_version == format::kProtocolVersion && challenge.challenge != 0;
  return is_one ? std::optional(challenge) : std::nullopt;
}

// A server that refuses has proved nothing. So it can only say why there is no connection. It cannot say the outcome of
// an operation, such as that a key is absent.
Code CodeOfRefusal(uint8_t said) {
  for (const Code code : {Code::kInvalidArgument, Code::kResourceExhausted, Code::kPermissionDenied}) {
    if (said == static_cast<uint8_t>(code)) return code;
  }
  return Code::kUnavailable;
}

bool Offers(std::span<const fabric::RemoteRegion> offered, uint32_t region, uint64_t bytes) {
  return offered.size() > region && offered[region].size >= bytes;
}

// Returns true if the flush method keeps the promise of kPersisted. On a power-safe pool the method kNone would not: a
// put would be acknowledged before it is on the medium.
bool Flushes(const HelloReply& hello) {
  return hello.durability != static_cast<uint8_t>(format::Durability::kPowerSafe) ||
         hello.flush_method != static_cast<uint8_t>(format::FlushMethod::kNone);
}

// Returns true if the client can write where the server tells it to place values. A staging buffer must have room for
// any value, or the put of a large one would wait for ever.
bool MayPlace(const HelloReply& hello, std::span<const fabric::RemoteRegion> offered) {
  const bool stages = hello.placing == static_cast<uint8_t>(Placing::kStaging) ||
                      hello.placing == static_cast<uint8_t>(Placing::kWindow);
  if (stages) return Offers(offered, format::kStagingRegion, hello.geometry.segment_size);
  if (hello.placing == static_cast<uint8_t>(Placing::kPool)) {
    return Offers(offered, format::kPoolWriteRegion, hello.geometry.pool_size);
  }
  return hello.placing == static_cast<uint8_t>(Placing::kNone);
}

}  // namespace

// --- What the client says

void Handshake::Begin(uint32_t slots_wanted) {
  proof_.reset();
  slots_offered_ = std::min(slots_wanted, format::kSlotsMax);
}

HelloRequest Handshake::Request() const {
  HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(shard_);
  hello.slots = slots_offered_;
  hello.client_id = client_id_;
  if (proof_) {
    hello.challenge = proof_->challenge.challenge;
    hello.proof = format::ClientProof(proof_->token, proof_->challenge.nonce, hello);
  }
  return hello;
}

// --- A server that refuses

bool Handshake::IsChallenged(std::span<const std::byte> refusal) const {
  return (!proof_ || proof_->number < kAnswersMost) && ChallengeIn(refusal).has_value();
}

void Handshake::Answer(std::span<const std::byte> refusal, std::string token) {
  proof_ = {*ChallengeIn(refusal), std::move(token), proof_ ? proof_->number + 1 : 1};
}

std::optional<Status> Handshake::ReasonOf(std::span<const std::byte> refusal) const {
  if (ChallengeIn(refusal)) {
    return Status(Code::kPermissionDenied, address_ + ": the server asks for a proof of the token again after " +
                                               std::to_string(kAnswersMost) +
                                               " proofs, as if each came too late; try again when it is less busy");
  }
  if (refusal.size() < sizeof(HelloRefusal)) return std::nullopt;
  const auto said = LoadAs<HelloRefusal>(refusal);
  if (said.magic != format::kHelloMagic || said.is_challenge != 0) return std::nullopt;
  const std::string_view message(said.message.begin(), std::ranges::find(said.message, '\0'));
  return Status(CodeOfRefusal(said.code), address_ + ": " + Printable(message));
}

// --- A server that accepts

Status Handshake::Take(std::span<const std::byte> reply, std::span<const fabric::RemoteRegion> offered,
                       bool has_token) {
  if (reply.size() < sizeof(HelloReply)) return {Code::kInvalidArgument, address_ + ": that is no Erda server"};
  const auto hello = LoadAs<HelloReply>(reply);
  if (auto status = Check(hello, offered, has_token); !status.ok()) return status;
  hello_ = hello;
  return {};
}

Status Handshake::Check(const HelloReply& hello, std::span<const fabric::RemoteRegion> offered, bool has_token) const {
  const auto wrong = [&](const char* what) { return Status(Code::kInvalidArgument, address_ + ": " + what); };
  if (hello.magic != format::kHelloMagic) return wrong("that is no Erda server");
  if (hello.protocol_version != format::kProtocolVersion) return wrong("the server speaks another protocol version");
  if (proof_) {
    const auto proof = format::ServerProof(proof_->token, proof_->challenge.nonce, hello);
    if (!format::SameProof(proof, hello.proof)) {
      return {Code::kPermissionDenied, address_ + ": the server does not prove that it knows the token"};
    }
  } else if (has_token) {
    return {Code::kPermissionDenied, address_ +
                                         ": the server does not ask for the token, so it may be an impostor; "
                                         "check the address, and start the server with a token file"};
  }
  const bool flush_is_known = hello.durability <= static_cast<uint8_t>(format::Durability::kPowerSafe) &&
                              hello.flush_method <= static_cast<uint8_t>(format::FlushMethod::kServerFlush);
  if (!flush_is_known) return wrong("the server has a pool or a flush method that this client does not know");
  const uint64_t slot_bytes = uint64_t{hello.slots} * hello.slot_bytes;
  const bool may_ask = hello.read_only != 0 ? hello.placing == static_cast<uint8_t>(Placing::kNone)
                                            : Offers(offered, format::kRequestRegion, slot_bytes);
  const format::Geometry& geometry = hello.geometry;
  const bool holds = Flushes(hello) && format::CheckGeometry(geometry).ok() && shard_ < geometry.shards &&
                     hello.slots >= 1 && hello.slots <= slots_offered_ && hello.slot_bytes >= sizeof(format::Request) &&
                     Offers(offered, format::kPoolRegion, geometry.pool_size) &&
                     Offers(offered, format::kControlRegion, format::ControlRegionBytes(geometry)) && may_ask &&
                     MayPlace(hello, offered);
  return holds ? Status()
               : wrong(
                     "the server's geometry, slots, flush method and memory do not fit together; "
                     "use an Erda server of this client's version");
}

}  // namespace erda::client
