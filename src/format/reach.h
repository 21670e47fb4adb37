// The reach of a class of keys: the distance that an entry may have from its key's home.
//
// The top four bits of a key's hash are its class. They also choose its home. Each class has an exponent e of three
// bits. A key's entry is in its *window*: min(64 << e, slots of a block) slots of its block. The 64 slots from its home
// are among them (IndexLayout::WindowOf). All exponents are 0 until a neighbourhood has more keys than slots.
//
//   bit 47   45 44   42         5    3 2    0
//       +------+------+-- ... -+------+------+
//       | e15  | e14  |        | e1   | e0   |
//       +------+------+-- ... -+------+------+
//
// The number is in the shard's record (superblock.h) and in its control block. Exponents only grow (I15).
#pragma once

#include <algorithm>
#include <cstdint>

namespace erda::format {

class Reaches {
 public:
  static constexpr uint32_t kClasses = 16;
  // With this exponent a window is the whole block, whatever the size of a block.
  static constexpr uint32_t kExponentMax = 5;

  constexpr Reaches() = default;
  explicit constexpr Reaches(uint64_t number) : number_(number & kMask) {}
  // Returns the largest reaches. They are right for any index, and slow.
  static constexpr Reaches Farthest() {
    Reaches all;
    for (uint32_t of = 0; of < kClasses; ++of) all.number_ |= uint64_t{kExponentMax} << (of * kBits);
    return all;
  }

  static constexpr uint32_t ClassOf(uint64_t key_hash) { return static_cast<uint32_t>(key_hash >> 60); }

  [[nodiscard]] constexpr uint64_t number() const { return number_; }
  [[nodiscard]] constexpr bool none() const { return number_ == 0; }
  [[nodiscard]] constexpr uint32_t Exponent(uint64_t key_hash) const {
    return static_cast<uint32_t>(number_ >> (ClassOf(key_hash) * kBits)) & 7;
  }
  // Returns the reaches with a larger exponent, by 1, for the key's class. REQUIRES: it is less than kExponentMax.
  [[nodiscard]] constexpr Reaches Raised(uint64_t key_hash) const {
    return Reaches(number_ + (uint64_t{1} << (ClassOf(key_hash) * kBits)));
  }
  // Returns the reaches with the larger exponent of each class.
  [[nodiscard]] constexpr Reaches With(Reaches other) const {
    Reaches both;
    for (uint32_t at = 0; at < kClasses * kBits; at += kBits) {
      both.number_ |= std::max(number_ >> at & 7, other.number_ >> at & 7) << at;
    }
    return both;
  }
  constexpr bool operator==(const Reaches&) const = default;

 private:
  static constexpr uint32_t kBits = 3;
  static constexpr uint64_t kMask = (uint64_t{1} << (kClasses * kBits)) - 1;
  uint64_t number_ = 0;
};
static_assert(Reaches().Raised(0).Raised(0).Exponent(0) == 2);
static_assert(Reaches::Farthest().Exponent(UINT64_MAX) == Reaches::kExponentMax);

}  // namespace erda::format
