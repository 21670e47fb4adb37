#include "format/challenge.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/printable.h"
#include "format/proof.h"

namespace erda::format {

namespace {

// A server sends another challenge if the answer to the first one came too late.
constexpr uint32_t kAnswersMost = 3;

// Returns the challenge, if the server refused with one.
std::optional<HelloChallenge> ChallengeIn(std::span<const std::byte> data) {
  if (data.size() < sizeof(HelloChallenge)) return std::nullopt;
  const auto challenge = LoadAs<HelloChallenge>(data);
  const bool is_one = challenge.magic == kHelloMagic && challenge.is_challenge == 1 &&
                      challenge.protocol_version == kProtocolVersion && challenge.challenge != 0;
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

}  // namespace

bool ChallengeAnswer::IsChallenged(std::span<const std::byte> refusal) const {
  return (!proof_ || proof_->number < kAnswersMost) && ChallengeIn(refusal).has_value();
}

void ChallengeAnswer::Answer(std::span<const std::byte> refusal, std::string token) {
  proof_ = {*ChallengeIn(refusal), std::move(token), proof_ ? proof_->number + 1 : 1};
}

std::optional<Status> ChallengeAnswer::ReasonOf(std::span<const std::byte> refusal) {
  if (ChallengeIn(refusal)) {
    return Status(Code::kPermissionDenied, "the server asks for a proof of the token again after " +
                                               std::to_string(kAnswersMost) +
                                               " proofs, as if each came too late; try again when it is less busy");
  }
  if (refusal.size() < sizeof(HelloRefusal)) return std::nullopt;
  const auto said = LoadAs<HelloRefusal>(refusal);
  if (said.magic != kHelloMagic || said.is_challenge != 0) return std::nullopt;
  const std::string_view message(said.message.begin(), std::ranges::find(said.message, '\0'));
  return Status(CodeOfRefusal(said.code), Printable(message));
}

void ChallengeAnswer::Prove(HelloRequest* hello) const {
  if (!proof_) return;
  hello->challenge = proof_->challenge.challenge;
  hello->proof = ClientProof(proof_->token, proof_->challenge.nonce, *hello);
}

Status ChallengeAnswer::CheckServer(const HelloReply& hello, bool has_token) const {
  if (proof_) {
    if (SameProof(ServerProof(proof_->token, proof_->challenge.nonce, hello), hello.proof)) return {};
    return {Code::kPermissionDenied, "the server does not prove that it knows the token"};
  }
  if (!has_token) return {};
  return {Code::kPermissionDenied,
          "the server does not ask for the token, so it may be an impostor; check the address, and start the server "
          "with a token file"};
}

}  // namespace erda::format
