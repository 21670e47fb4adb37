// The two ends of a connection prove to each other that they know the token. The token itself never travels. A proof is
// the first 16 bytes of HMAC-SHA-256 with the token as key. It covers a word that tells the ends apart, the nonce of
// the server's challenge, and all of the hello before its proof. A nonce counts once, and so does a proof. A proof
// counts for one client and one shard, and in one direction only.
//
// Owns nothing. Any thread may call these functions.
#pragma once

#include <span>
#include <string_view>

#include "format/hello.h"
#include "format/messages.h"

namespace erda::format {

[[nodiscard]] Proof ClientProof(std::string_view token, const Nonce& nonce, const HelloRequest& hello);
[[nodiscard]] Proof ServerProof(std::string_view token, const Nonce& nonce, const HelloReply& hello);
// Compares two proofs. Takes the same time wherever they differ.
[[nodiscard]] bool SameProof(const Proof& a, const Proof& b);

}  // namespace erda::format
