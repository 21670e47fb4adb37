// Random numbers that a seed repeats on every machine: xoshiro256** seeded by splitmix64. Not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace erda {

class Random {
 public:
  explicit constexpr Random(uint64_t seed) {
    for (uint64_t& word : state_) word = Mix(seed += 0x9e3779b97f4a7c15);
  }

  constexpr uint64_t Next() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // Returns a number in [0, n). REQUIRES: n > 0. The bias, at most n / 2^64, does not matter to a test.
  constexpr uint64_t Uniform(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64);
  }
  // Returns a number in [low, high]. REQUIRES: low <= high, not the whole range of 64 bits.
  constexpr uint64_t Between(uint64_t low, uint64_t high) { return low + Uniform(high - low + 1); }
  // Returns true with the probability p: never for 0, always for 1.
  constexpr bool Chance(double p) { return static_cast<double>(Next() >> 11) * 0x1p-53 < p; }

  template <class T>
  constexpr void Shuffle(std::span<T> items) {
    for (size_t left = items.size(); left > 1; --left) {
      using std::swap;
      swap(items[left - 1], items[static_cast<size_t>(Uniform(left))]);
    }
  }

  // Spreads a number over all bits. Different numbers give different results.
  static constexpr uint64_t Mix(uint64_t n) {
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
    n = (n ^ (n >> 27)) * 0x94d049bb133111eb;
    return n ^ (n >> 31);
  }

 private:
  static constexpr uint64_t Rotate(uint64_t n, int by) { return (n << by) | (n >> (64 - by)); }

  uint64_t state_[4] = {};
};

}  // namespace erda
