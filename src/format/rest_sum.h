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

#include <bit>
#include <cstdint>
#include <optional>

#include "format/index_entry.h"
#include "format/superblock.h"

namespace erda::format {

class RestSum {
 public:
  constexpr RestSum() = default;
  constexpr RestSum(uint64_t place, uint64_t hash) : place_(place & kMask), hash_(hash & kMask) {}
  static constexpr RestSum Of(uint64_t slot, const IndexEntry& entry) {
    if (entry.word == 0 && entry.meta == 0) return {};
    return {PlaceOf(slot, entry), HashOf(2 * slot, entry.word) + HashOf(2 * slot + 1, entry.meta)};
  }
  // As the record says it. Nothing: the record has none, or a damaged one.
  static constexpr std::optional<RestSum> In(const ShardRecord& record) {
    const uint64_t place = CheckedWord(record.rest_place).number();
    const uint64_t hash = CheckedWord(record.rest_hash).number();
    if (place == 0 || hash == 0) return std::nullopt;
    return RestSum(place, hash);
  }

  [[nodiscard]] constexpr uint64_t place() const { return place_; }
  [[nodiscard]] constexpr uint64_t hash() const { return hash_; }
  // The words of the record.
  [[nodiscard]] constexpr uint64_t place_word() const { return CheckedWord::Of(place_ | kKnown).raw(); }
  [[nodiscard]] constexpr uint64_t hash_word() const { return CheckedWord::Of(hash_ | kKnown).raw(); }

  constexpr RestSum& operator+=(const RestSum& other) { return *this = {place_ ^ other.place_, hash_ + other.hash_}; }
  constexpr RestSum& operator-=(const RestSum& other) { return *this = {place_ ^ other.place_, hash_ - other.hash_}; }
  constexpr bool operator==(const RestSum&) const = default;

  // Of a difference of two sums: the bit that has flipped, if it is one.
  [[nodiscard]] constexpr uint64_t slot() const { return place_ / kBits; }
  [[nodiscard]] constexpr IndexEntry WithoutFlip(IndexEntry entry) const {
    const uint64_t bit = place_ % kBits;
    (bit < kBits / 2 ? entry.word : entry.meta) ^= uint64_t{1} << (bit % (kBits / 2));
    return entry;
  }

 private:
  static constexpr uint64_t kBits = 128;  // of an entry
  static constexpr uint64_t kKnown = uint64_t{1} << 47;
  static constexpr uint64_t kMask = kKnown - 1;

  static constexpr uint64_t Parity(uint64_t bits) { return static_cast<uint64_t>(std::popcount(bits)) & 1; }
  static constexpr uint64_t PlaceOf(uint64_t slot, const IndexEntry& entry) {
    // kNumbersWith[i]: the numbers from 0 to 63 that have bit i.
    constexpr uint64_t kNumbersWith[] = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
                                         0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000};
    const uint64_t both = entry.word ^ entry.meta;
    uint64_t place = Parity(both) * slot * kBits | Parity(entry.meta) << 6;
    for (uint64_t i = 0; i < 6; ++i) place |= Parity(both & kNumbersWith[i]) << i;
    return place;
  }
  static constexpr uint64_t HashOf(uint64_t number, uint64_t value) {
    if (value == 0) return 0;
    uint64_t hash = value * 0xcd613e30d8f16adf + number * 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9;
    return hash ^ hash >> 32;
  }

  uint64_t place_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace erda::format
