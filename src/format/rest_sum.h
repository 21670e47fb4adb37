// The sum over the slots of an index at rest, which a clean close leaves in the shard's record. A server that starts
// sums again what it finds. If one bit has flipped in between, the two sums tell which one.
//
// place: the exclusive or of the places of all bits that are 1. The place of a bit is slot * 128 + bit, where bits 0 to
// 63 are those of the word, and the others those of meta. One flipped bit changes the sum by its place.
// hash: the sum of a hash of each word and each meta that is not zero, modulo 2^47. It tells that something has
// changed. It also tells whether a flip at a place is all that has changed.
//
// The record holds both as CheckedWords of 48 bits. Bit 47 of the number is 1, so that the number is not 0.
#pragma once

#include <cstdint>
#include <optional>

#include "format/index_entry.h"
#include "format/superblock.h"

namespace erda::format {

class RestSum {
 public:
  constexpr RestSum() = default;
  constexpr RestSum(uint64_t place, uint64_t hash)
      : words_(uint64_t{1} << (place % (kBits / 2))),
        metas_(place / (kBits / 2) % 2),
        slots_(place / kBits & kMask / kBits),
        hash_(hash & kMask) {}
  static constexpr RestSum Of(uint64_t slot, const IndexEntry& entry) {
    RestSum sum;
    sum.words_ = entry.word ^ entry.meta;
    sum.metas_ = entry.meta;
    sum.slots_ = Parity(sum.words_) * slot;
    sum.hash_ = HashOf(2 * slot, entry.word) + HashOf(2 * slot + 1, entry.meta);
    return sum;
  }
  // As the record says it. Nothing: the record has none, or a damaged one.
  static constexpr std::optional<RestSum> In(const ShardRecord& record) {
    const uint64_t place = CheckedWord(record.rest_place).number();
    const uint64_t hash = CheckedWord(record.rest_hash).number();
    if (place == 0 || hash == 0) return std::nullopt;
    return RestSum(place, hash);
  }

  [[nodiscard]] constexpr uint64_t place() const {
    uint64_t place = slots_ * kBits | Parity(metas_) << 6;
    uint64_t bits = words_;
    // Each half of the bits gives one bit of the sum of their places. Then both halves become one.
    for (int i = 5; i >= 0; --i) {
      const uint64_t upper = bits >> (1 << i);
      place |= Parity(upper) << i;
      bits = (bits ^ upper) & ((uint64_t{1} << (1 << i)) - 1);
    }
    return place & kMask;
  }
  [[nodiscard]] constexpr uint64_t hash() const { return hash_ & kMask; }
  // The words of the record.
  [[nodiscard]] constexpr uint64_t place_word() const { return CheckedWord::Of(place() | kKnown).raw(); }
  [[nodiscard]] constexpr uint64_t hash_word() const { return CheckedWord::Of(hash() | kKnown).raw(); }

  constexpr RestSum& operator+=(const RestSum& other) {
    AddPlaces(other);
    hash_ += other.hash_;
    return *this;
  }
  constexpr RestSum& operator-=(const RestSum& other) {
    AddPlaces(other);
    hash_ -= other.hash_;
    return *this;
  }
  constexpr bool operator==(const RestSum& other) const { return place() == other.place() && hash() == other.hash(); }

  // Of a difference of two sums: the slot, and the entry in it, if one bit has flipped. IsChange tells whether one has.
  [[nodiscard]] constexpr uint64_t slot() const { return place() / kBits; }
  [[nodiscard]] constexpr IndexEntry WithoutFlip(IndexEntry entry) const {
    const uint64_t bit = place() % kBits;
    (bit < kBits / 2 ? entry.word : entry.meta) ^= uint64_t{1} << (bit % (kBits / 2));
    return entry;
  }

  // Returns true if the difference is just that between these entries of slot().
  [[nodiscard]] constexpr bool IsChange(const IndexEntry& from, const IndexEntry& to) const {
    RestSum change = Of(slot(), from);
    change -= Of(slot(), to);
    return change == *this;
  }

 private:
  static constexpr uint64_t kBits = 128;  // of an entry
  static constexpr uint64_t kKnown = uint64_t{1} << 47;
  static constexpr uint64_t kMask = kKnown - 1;

  // (std::popcount calls a function on processors that may lack the instruction.)
  static constexpr uint64_t Parity(uint64_t bits) { return static_cast<uint64_t>(__builtin_parityll(bits)); }
  static constexpr uint64_t HashOf(uint64_t number, uint64_t value) {
    if (value == 0) return 0;
    uint64_t hash = value * 0xcd613e30d8f16adf + number * 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9;
    return hash ^ hash >> 32;
  }
  // A place is a sum, too: the sum over the bits of an exclusive or of words is the exclusive or of their sums. So the
  // loop over the bits runs once in the end, and not for each entry.
  constexpr void AddPlaces(const RestSum& other) {
    words_ ^= other.words_;
    metas_ ^= other.metas_;
    slots_ ^= other.slots_;
  }

  uint64_t words_ = 0;  // word ^ meta of each slot
  uint64_t metas_ = 0;
  uint64_t slots_ = 0;  // those slots with an odd number of bits
  uint64_t hash_ = 0;
};

}  // namespace erda::format
