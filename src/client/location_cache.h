// The locations of the newest versions of keys when this client last saw them. A get that finds its key here reads the
// version alone, in one round trip. The version tells whether its entry has left it (docs/protocol.md, I12). So a
// location is a guess that the Read verifies. A wrong guess costs one more round trip.
//
// The cache has sets of four locations, and each set takes one cache line. A location that is used moves one place to
// the front of its set, and a new one takes the last place. So keys that are read once push out each other, and not the
// keys that are read often. If a location is wrong again and again, other clients write the key. Then the cache returns
// no location of the key until the key was seen twice in one place. Only the client's thread calls it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "format/log_address.h"

namespace erda::client {

struct Location {
  format::LogAddress address;
  uint32_t generation = 0;    // The generation of the region of `address`.
  uint64_t object_bytes = 0;  // The size of the version there.
  bool expires = false;       // The version has a deadline.
};

class LocationCache {
 public:
  static constexpr uint32_t kWays = 4;

  // Forgets all locations, and makes room for this many, rounded up to whole sets. 0: the cache never knows any.
  void Reset(uint64_t entries) { sets_.assign((entries + kWays - 1) / kWays, Set{}); }
  [[nodiscard]] uint64_t capacity() const { return sets_.size() * kWays; }

  // Loads the key's set into the processor's cache, since Find comes soon.
  void Prefetch(uint64_t key_hash) {
    if (!sets_.empty()) __builtin_prefetch(&SetOf(key_hash));
  }
  // Returns the key's location, or nullopt if the cache has none, or if a look there would not pay.
  [[nodiscard]] std::optional<Location> Find(uint64_t key_hash) {
    const Way* way = WayOf(key_hash);
    if (way == nullptr || way->trust() == 0) return std::nullopt;
    return Location{format::LogAddress(way->address), way->generation, way->granules() * format::kGranuleBytes,
                    way->expires()};
  }
  // Notes that the location from Find was right. Refute: that it was wrong.
  void Confirm(uint64_t key_hash) {
    if (sets_.empty()) return;
    Way* const first = SetOf(key_hash).ways.data();
    // Most keys that are looked up often are in front, with all trust.
    if (first->check == CheckOf(key_hash) && first->address != 0 && first->trust() == kTrustMax) return;
    ConfirmWay(key_hash);
  }
  void Refute(uint64_t key_hash);
  // Stores a location. Requires: the key's entry names this version as its new one, settled.
  void Store(uint64_t key_hash, const Location& location);
  // Forgets the location of the key.
  void Erase(uint64_t key_hash);

 private:
  static constexpr uint32_t kTrustBits = 2;
  static constexpr uint32_t kTrustMax = (1 << kTrustBits) - 1;
  static constexpr uint32_t kExpiresBit = 1 << kTrustBits;
  static constexpr uint32_t kGranulesShift = kTrustBits + 1;
  static constexpr uint64_t kGranulesMax = UINT32_MAX >> kGranulesShift;

  // One location. It is free if it has no address.
  struct Way {
    uint32_t check = 0;  // from the key's hash
    uint32_t address = 0;
    uint32_t generation = 0;
    uint32_t granules_and_trust = 0;  // and kExpiresBit

    [[nodiscard]] uint64_t granules() const { return granules_and_trust >> kGranulesShift; }
    [[nodiscard]] bool expires() const { return (granules_and_trust & kExpiresBit) != 0; }
    [[nodiscard]] uint32_t trust() const { return granules_and_trust & kTrustMax; }  // 0: not looked up
    void set_trust(uint32_t trust) { granules_and_trust = (granules_and_trust & ~kTrustMax) | trust; }
  };
  static_assert(sizeof(Way) == 16);
  struct alignas(64) Set {
    std::array<Way, kWays> ways;
  };

  [[nodiscard]] static uint32_t CheckOf(uint64_t key_hash) { return static_cast<uint32_t>(key_hash >> 32); }
  [[nodiscard]] Set& SetOf(uint64_t key_hash) {
    // Chooses the set by the hash bits that are not in the check. The multiplication replaces a division.
    return sets_[(uint64_t{static_cast<uint32_t>(key_hash)} * sets_.size()) >> 32];
  }
  void ConfirmWay(uint64_t key_hash);
  [[nodiscard]] Way* WayOf(uint64_t key_hash) {
    if (sets_.empty()) return nullptr;
    for (Way& way : SetOf(key_hash).ways) {
      if (way.check == CheckOf(key_hash) && way.address != 0) return &way;
    }
    return nullptr;
  }

  std::vector<Set> sets_;
};

}  // namespace erda::client
