#include "format/proof.h"

#include <algorithm>
#include <cstddef>

#include "base/bytes.h"
#include "base/crypto.h"

namespace erda::format {

namespace {

template <class Hello>
Proof ProofOf(std::string_view who, std::string_view token, const Nonce& nonce, const Hello& hello) {
  static_assert(offsetof(Hello, proof) + sizeof(Proof) == sizeof(Hello));
  const Digest digest =
      HmacSha256(AsBytes(token), {AsBytes(who), BytesOf(nonce), BytesOf(hello).first(offsetof(Hello, proof))});
  Proof proof;
  std::copy_n(digest.begin(), proof.size(), proof.begin());
  return proof;
}

}  // namespace

Proof ClientProof(std::string_view token, const Nonce& nonce, const HelloRequest& hello) {
  return ProofOf("erda client", token, nonce, hello);
}

Proof ServerProof(std::string_view token, const Nonce& nonce, const HelloReply& hello) {
  return ProofOf("erda server", token, nonce, hello);
}

bool SameProof(const Proof& a, const Proof& b) { return SameBytes(BytesOf(a), BytesOf(b)); }

}  // namespace erda::format
