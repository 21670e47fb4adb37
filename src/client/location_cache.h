// Where the newest versions of keys were when this client last saw them: a get that finds its key here reads the
// version alone, in one round trip, and the version itself tells whether its entry has left it (docs/protocol.md, I12).
// So what stands here is a guess that is verified by what is read; a wrong one costs one more round trip.
//
// Sets of four locations, a cache line each. A location that is used moves one place to the front of its set, and a new
// one takes the last place: keys that are read once push out each other, not those that are read often. A location that
// turns out wrong again and again, since others write the key, is looked up no more until it was seen twice in one
// place.
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
  uint32_t generation = 0;    // of the region of `address`
  uint64_t object_bytes = 0;  // of the version there
  bool expires = false;       // it has a deadline
};

class LocationCache {
 public:
  static constexpr uint32_t kWays = 4;

  // Forgets all. Rounded up to whole sets; 0: knows nothing, ever.
  void Reset(uint64_t entries) { sets_.assign((entries + kWays - 1) / kWays, Set{}); }
  [[nodiscard]] uint64_t capacity() const { return sets_.size() * kWays; }

  // The key will be looked for soon.
  void Prefetch(uint64_t key_hash) {
    if (!sets_.empty()) __builtin_prefetch(&SetOf(key_hash));
  }
  // Where to look for the key's version; nullopt: nowhere, or it is not worth it.
  [[nodiscard]] std::optional<Location> Find(uint64_t key_hash) {
    const Way* way = WayOf(key_hash);
    if (way == nullptr || way->trust() == 0) return std::nullopt;
    return Location{format::LogAddress(way->address), way->generation, way->granules() * format::kGranuleBytes,
                    way->expires()};
  }
  // What Find said was right, or was wrong.
  void Confirm(uint64_t key_hash) {
    Way* way = WayOf(key_hash);
    if (way == nullptr) return;
    if (way->trust() < kTrustMax) way->set_trust(way->trust() + 1);
    if (way != SetOf(key_hash).ways.data()) std::swap(*way, *(way - 1));
  }
  void Refute(uint64_t key_hash);
  // The key's entry names this version as its new one, settled.
  void Store(uint64_t key_hash, const Location& location);
  // The key is gone.
  void Erase(uint64_t key_hash);

 private:
  static constexpr uint32_t kTrustBits = 2;
  static constexpr uint32_t kTrustMax = (1 << kTrustBits) - 1;
  static constexpr uint32_t kExpiresBit = 1 << kTrustBits;
  static constexpr uint32_t kGranulesShift = kTrustBits + 1;
  static constexpr uint64_t kGranulesMax = UINT32_MAX >> kGranulesShift;

  // Free if there is no address.
  struct Way {
    uint32_t check = 0;  // of the key's hash
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
    // By the bits that are not in the check; a multiplication instead of a division.
    return sets_[(uint64_t{static_cast<uint32_t>(key_hash)} * sets_.size()) >> 32];
  }
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
