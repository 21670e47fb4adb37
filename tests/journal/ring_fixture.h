// Short helpers for the tests of the ring.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "journal/aligned_buffer.h"
#include "journal/fake_disk.h"
#include "journal/record.h"
#include "journal/ring.h"

namespace erda::journal {

inline constexpr uint64_t kDiskBlock = Disk::kBlock;
inline constexpr RingIdentity kRingIdentity = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf},
    3};

// Returns the one part of a record.
inline std::array<std::span<const std::byte>, 1> OnePart(std::span<const std::byte> bytes) { return {bytes}; }
// Returns `size` bytes that follow from the seed.
std::vector<std::byte> SomeBytes(uint64_t size, uint64_t seed);

// A record as Open visits it, with its bytes copied.
struct VisitedRecord {
  Place from;
  uint64_t epoch;
  uint64_t time_us;
  std::vector<std::byte> bytes;
};
// Opens a ring of the disk. If that fails, fails the test and returns nothing.
std::optional<Ring> MustOpenRing(Disk& disk, const RingPart& part, std::vector<VisitedRecord>* visited = nullptr);
// Appends one part at the end of the ring.
Status AppendTo(Ring& ring, std::span<const std::byte> bytes, uint64_t time_us = 0);

// A small ring. It has ten blocks of records, in a part that does not begin with the disk.
class RingTest : public testing::Test {
 protected:
  RingTest() { EXPECT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok()); }

  // Opens the ring. If that fails, fails the test.
  std::optional<Ring> Open();
  // Writes a record without the ring, as a writer with several records under way may leave it.
  void Plant(uint64_t block, Place place, uint64_t epoch, std::span<const std::byte> bytes,
             const RingIdentity& identity = kRingIdentity);
  // Returns the bytes of all records that the last Open visited.
  [[nodiscard]] std::string Visited() const;

  FakeDisk disk_{32 * kDiskBlock, 512, 1};
  const RingPart part_{2 * kDiskBlock, 12 * kDiskBlock};
  std::vector<VisitedRecord> visited_;  // By the last Open.
};

}  // namespace erda::journal
