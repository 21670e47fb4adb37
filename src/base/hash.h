// The hash of a key. It is part of the pool's format: a key's place follows from it.
//
// SipHash-1-3 under the pool's secret seed. A peer that does not know the seed cannot choose keys that share a place.
// It learns nothing about the hash of one key from the hashes of others. The parties that know the seed are listed in
// docs/security.md, "Chosen keys". The costs of other hashes are in docs/design.md, "The hash".
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace erda {

// Random for each pool, and secret.
using HashSeed = std::array<uint64_t, 2>;

// Maps a message of bytes to 64 bits: J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF".
template <int Rounds, int FinalRounds>
class SipHash {
 public:
  explicit constexpr SipHash(const HashSeed& seed)
      : v0_(seed[0] ^ 0x736f6d6570736575),
        v1_(seed[1] ^ 0x646f72616e646f6d),
        v2_(seed[0] ^ 0x6c7967656e657261),
        v3_(seed[1] ^ 0x7465646279746573) {}

  [[gnu::always_inline]] uint64_t Of(std::string_view bytes) {
    const size_t rest = bytes.size() % sizeof(uint64_t);
    for (size_t at = 0; at < bytes.size() - rest; at += sizeof(uint64_t)) Take(Load<uint64_t>(bytes, at));
    Take(uint64_t{bytes.size()} << 56 | Last(bytes, rest));
    v2_ ^= 0xff;
    for (int i = 0; i < FinalRounds; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  template <class Word>
  [[gnu::always_inline]] static uint64_t Load(std::string_view bytes, size_t at) {
    static_assert(std::endian::native == std::endian::little);
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    return word;
  }
  // Returns the last `rest` bytes, fewer than 8, as a little-endian number. Every copy has a constant size, since a
  // variable one would cost a call.
  [[gnu::always_inline]] static uint64_t Last(std::string_view bytes, size_t rest) {
    if (rest == 0) return 0;
    if (bytes.size() >= 8) return Load<uint64_t>(bytes, bytes.size() - 8) >> (64 - 8 * rest);
    if (rest >= 4) return Load<uint32_t>(bytes, 0) | Load<uint32_t>(bytes, rest - 4) << (8 * (rest - 4));
    const uint64_t middle = Load<uint8_t>(bytes, rest / 2) << (8 * (rest / 2));
    return Load<uint8_t>(bytes, 0) | middle | Load<uint8_t>(bytes, rest - 1) << (8 * (rest - 1));
  }
  [[gnu::always_inline]] void Take(uint64_t word) {
    v3_ ^= word;
    for (int i = 0; i < Rounds; ++i) Round();
    v0_ ^= word;
  }
  [[gnu::always_inline]] void Round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32) + v3_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
};

// Never a call: for the shortest get, of which a call would be 2 %.
[[nodiscard, gnu::always_inline]] inline uint64_t HashKeyInPlace(std::string_view key, const HashSeed& seed) {
  return SipHash<1, 3>(seed).Of(key);
}

[[nodiscard]] inline uint64_t HashKey(std::string_view key, const HashSeed& seed) { return HashKeyInPlace(key, seed); }

// Spreads a uniform 32-bit or 64-bit number over [0, n) without a division.
constexpr uint32_t Spread32(uint32_t uniform, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{uniform} * n) >> 32);
}
constexpr uint64_t Spread64(uint64_t uniform, uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(uniform) * n) >> 64);
}

}  // namespace erda
