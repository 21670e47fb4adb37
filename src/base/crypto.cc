#include "base/crypto.h"

#include <sodium.h>

namespace erda {

namespace {

const unsigned char* Unsigned(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// Initializes libsodium: it chooses the code for this processor, and opens the source of random bytes. Safe to call
// again, from any thread.
void Prepare() {
  static const int prepared = sodium_init();
  (void)prepared;  // It fails if the system has no random bytes. Then randombytes_buf ends the process.
}

}  // namespace

Digest HmacSha256(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts) {
  static_assert(crypto_auth_hmacsha256_BYTES == sizeof(Digest));
  Prepare();
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, Unsigned(key), key.size());
  for (const auto& part : parts) crypto_auth_hmacsha256_update(&state, Unsigned(part), part.size());
  Digest digest;
  crypto_auth_hmacsha256_final(&state, digest.data());
  sodium_memzero(&state, sizeof(state));
  return digest;
}

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return sodium_memcmp(a.data(), b.data(), b.size()) == 0;
}

void FillRandom(std::span<std::byte> bytes) {
  Prepare();
  randombytes_buf(bytes.data(), bytes.size());
}

}  // namespace erda
