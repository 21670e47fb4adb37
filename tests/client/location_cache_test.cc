// A client remembers the locations of versions. Their number is bounded, and it keeps those that it reads often.
#include "client/location_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace erda::client {
namespace {

using format::LogAddress;

// Returns hashes that are spread like those of keys.
uint64_t Hash(uint64_t i) { return Random::Mix(i + 1); }

Location At(uint32_t granule, uint32_t generation = 1, uint64_t bytes = 64) {
  return {LogAddress(granule), generation, bytes};
}

LocationCache CacheOf(uint64_t entries) {
  LocationCache cache;
  cache.Reset(entries);
  return cache;
}

TEST(LocationCache, StoredLocationIsFound) {
  LocationCache cache = CacheOf(1000);
  cache.Store(Hash(1), At(7, 3, 100));
  const auto found = cache.Find(Hash(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, LogAddress(7));
  EXPECT_EQ(found->generation, 3U);
  EXPECT_EQ(found->object_bytes, 112U) << "whole granules";
  EXPECT_FALSE(cache.Find(Hash(2)));
}

TEST(LocationCache, CacheOfNoEntriesKnowsNothing) {
  LocationCache cache = CacheOf(0);
  cache.Store(Hash(1), At(7));
  cache.Confirm(Hash(1));
  cache.Refute(Hash(1));
  cache.Erase(Hash(1));
  EXPECT_FALSE(cache.Find(Hash(1)));
  EXPECT_EQ(cache.capacity(), 0U);
}

TEST(LocationCache, CacheHoldsAsManyLocationsAsItsSize) {
  for (const uint64_t entries : {1U, 4U, 5U, 1000U}) {
    LocationCache cache = CacheOf(entries);
    EXPECT_EQ(cache.capacity(), (entries + 3) / 4 * 4);
    for (uint64_t i = 0; i < 100 * entries; ++i) cache.Store(Hash(i), At(1));
    uint64_t found = 0;
    for (uint64_t i = 0; i < 100 * entries; ++i) found += cache.Find(Hash(i)) ? 1 : 0;
    EXPECT_EQ(found, cache.capacity()) << entries;
  }
}

TEST(LocationCache, ResetForgetsAllLocations) {
  LocationCache cache = CacheOf(100);
  cache.Store(Hash(1), At(7));
  cache.Reset(100);
  EXPECT_FALSE(cache.Find(Hash(1)));
}

TEST(LocationCache, OftenReadKeysStayBesideKeysReadOnce) {
  LocationCache cache = CacheOf(64);
  constexpr uint64_t kHot = 16;
  uint64_t cold = kHot;
  for (int round = 0; round < 1000; ++round) {
    for (uint64_t i = 0; i < kHot; ++i) {
      if (cache.Find(Hash(i))) {
        cache.Confirm(Hash(i));
      } else {
        cache.Store(Hash(i), At(1));
      }
    }
    for (int i = 0; i < 64; ++i) cache.Store(Hash(cold++), At(1));
  }
  uint64_t found = 0;
  for (uint64_t i = 0; i < kHot; ++i) found += cache.Find(Hash(i)) ? 1 : 0;
  EXPECT_GE(found, kHot - 2) << "a set of four may have five of them";
}

// The cache has room for a sixteenth of a million keys. The key of rank r is read with a likelihood of 1 / r.
TEST(LocationCache, CacheFindsMostKeysUnderZipfsLaw) {
  constexpr uint64_t kKeys = 1 << 20;
  LocationCache cache = CacheOf(kKeys / 16);
  Random random(1);
  uint64_t hits = 0;
  constexpr uint64_t kGets = 2'000'000;
  for (uint64_t i = 0; i < 2 * kGets; ++i) {
    const uint64_t key =
        Hash(static_cast<uint64_t>(std::exp2(20 * static_cast<double>(random.Next() >> 11) * 0x1p-53)));
    if (cache.Find(key)) {
      cache.Confirm(key);
      hits += i < kGets ? 0 : 1;
    } else {
      cache.Store(key, At(1));
    }
  }
  EXPECT_GT(hits, kGets * 70 / 100) << "the most that is possible is 80 in 100: the popular keys alone";
}

TEST(LocationCache, CacheStopsReturningAKeyThatOthersOverwrite) {
  LocationCache cache = CacheOf(64);
  uint64_t misled = 0;
  for (uint32_t i = 1; i <= 1000; ++i) {
    if (cache.Find(Hash(1))) {
      ++misled;
      cache.Refute(Hash(1));
    }
    cache.Store(Hash(1), At(i));
  }
  EXPECT_EQ(misled, 1U);
  // After it was seen twice in one place, the cache returns it again.
  cache.Store(Hash(1), At(1000));
  EXPECT_TRUE(cache.Find(Hash(1)));
}

TEST(LocationCache, OneWrongLocationAmongManyRightOnesDoesNotMatter) {
  LocationCache cache = CacheOf(64);
  cache.Store(Hash(1), At(1));
  for (int i = 0; i < 5; ++i) cache.Confirm(Hash(1));
  cache.Refute(Hash(1));
  cache.Store(Hash(1), At(2));
  ASSERT_TRUE(cache.Find(Hash(1)));
  EXPECT_EQ(cache.Find(Hash(1))->address, LogAddress(2));
}

TEST(LocationCache, ObjectTooLargeForTheCacheRemovesTheLocation) {
  LocationCache cache = CacheOf(64);
  cache.Store(Hash(1), At(1));
  cache.Store(Hash(1), At(2, 1, uint64_t{1} << 40));
  EXPECT_FALSE(cache.Find(Hash(1)));
}

}  // namespace
}  // namespace erda::client
