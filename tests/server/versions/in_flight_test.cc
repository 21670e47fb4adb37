#include "server/versions/in_flight.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace erda::server {
namespace {

Reservation Make(uint64_t key_hash, uint32_t address, uint32_t head = 0) {
  Reservation reservation;
  reservation.key_hash = key_hash;
  reservation.address = format::LogAddress(address);
  reservation.head = head;
  return reservation;
}

std::multiset<uint32_t> AddressesOf(InFlight& in_flight, uint64_t key_hash) {
  std::multiset<uint32_t> addresses;
  in_flight.ForEachOf(key_hash, [&](InFlight::Id, const Reservation& r) { addresses.insert(r.address.raw()); });
  return addresses;
}

TEST(InFlightTest, FindsByHashHeadAndAddressTogether) {
  InFlight in_flight;
  const InFlight::Id id = in_flight.Add(Make(1, 10, 2));
  EXPECT_EQ(in_flight.Find(1, 2, format::LogAddress(10)), id);
  EXPECT_EQ(in_flight.Find(1, 2, format::LogAddress(11)), InFlight::kNone);
  EXPECT_EQ(in_flight.Find(1, 3, format::LogAddress(10)), InFlight::kNone);
  EXPECT_EQ(in_flight.Find(2, 2, format::LogAddress(10)), InFlight::kNone);
  // The hashes have the same bucket, since the table takes them modulo a power of two.
  EXPECT_EQ(in_flight.Find(1 + (1ULL << 40), 2, format::LogAddress(10)), InFlight::kNone);
}

TEST(InFlightTest, HashesOfOneBucketAreKeptApart) {
  InFlight in_flight;
  const uint64_t same_bucket = 1 + (1ULL << 40);
  in_flight.Add(Make(1, 10));
  in_flight.Add(Make(same_bucket, 20));
  in_flight.Add(Make(1, 30));
  EXPECT_EQ(AddressesOf(in_flight, 1), (std::multiset<uint32_t>{10, 30}));
  EXPECT_EQ(AddressesOf(in_flight, same_bucket), (std::multiset<uint32_t>{20}));
}

TEST(InFlightTest, VisitMayRemoveItsReservation) {
  InFlight in_flight;
  for (uint32_t i = 1; i <= 6; ++i) in_flight.Add(Make(7, i));
  in_flight.ForEachOf(7, [&](InFlight::Id id, const Reservation& r) {
    if (r.address.raw() % 2 == 0) in_flight.Remove(id);
  });
  EXPECT_EQ(AddressesOf(in_flight, 7), (std::multiset<uint32_t>{1, 3, 5}));
  in_flight.ForEach([&](InFlight::Id id, const Reservation&) { in_flight.Remove(id); });
  EXPECT_EQ(in_flight.size(), 0U);
  EXPECT_TRUE(AddressesOf(in_flight, 7).empty());
}

TEST(InFlightTest, VisitOfSomeContinuesAfterTheLastVisit) {
  InFlight in_flight;
  for (uint32_t i = 1; i <= 10; ++i) in_flight.Add(Make(i, i));
  std::multiset<uint32_t> seen;
  InFlight::Id cursor = 0;
  for (int i = 0; i < 5; ++i) {
    in_flight.ForSome(2, &cursor, [&](InFlight::Id, const Reservation& r) { seen.insert(r.address.raw()); });
  }
  EXPECT_EQ(seen, (std::multiset<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  seen.clear();
  in_flight.ForSome(1000, &cursor, [&](InFlight::Id, const Reservation& r) { seen.insert(r.address.raw()); });
  EXPECT_EQ(seen.size(), 10U);
  InFlight empty;
  empty.ForSome(1000, &cursor, [&](InFlight::Id, const Reservation&) { ADD_FAILURE() << "nothing is in flight"; });
}

TEST(InFlightTest, AgreesWithAMapThroughRandomAddsAndRemoves) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    InFlight in_flight;
    std::map<InFlight::Id, Reservation> expected;
    for (uint32_t step = 1; step <= 20'000; ++step) {
      if (expected.empty() || random.Chance(0.5)) {
        const Reservation reservation = Make(random.Uniform(20) + random.Uniform(3) * 4096, step);
        const InFlight::Id id = in_flight.Add(reservation);
        ASSERT_TRUE(expected.emplace(id, reservation).second) << "an id was given twice";
      } else {
        auto it = expected.begin();
        std::advance(it, random.Uniform(expected.size()));
        in_flight.Remove(it->first);
        ASSERT_EQ(in_flight.Find(it->second.key_hash, it->second.head, it->second.address), InFlight::kNone);
        expected.erase(it);
      }
      ASSERT_EQ(in_flight.size(), expected.size());
      if (step % 100 != 0) continue;
      size_t visited = 0;
      in_flight.ForEach([&](InFlight::Id id, const Reservation& r) {
        ++visited;
        ASSERT_EQ(expected.at(id).address, r.address);
      });
      ASSERT_EQ(visited, expected.size());
      for (const auto& [id, reservation] : expected) {
        ASSERT_EQ(in_flight.Find(reservation.key_hash, reservation.head, reservation.address), id);
      }
    }
  }
}

}  // namespace
}  // namespace erda::server
