// Copies to and from shared memory, of all small sizes and alignments.
#include "fabric/shm/copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace erda::fabric {
namespace {

constexpr size_t kSizeMost = 160;  // Two of the widest vectors, and ends on both sides.
constexpr size_t kAlignments = 64;
constexpr std::byte kUntouched{0xee};

struct alignas(64) Memory {
  std::array<std::byte, kSizeMost + 2 * kAlignments> bytes;
};

// Copies each size from each alignment of the shared side, and checks every byte, also those around the copy.
template <class Copy>
void CopyAll(Copy&& copy) {
  Memory from{};
  for (size_t i = 0; i < from.bytes.size(); ++i) from.bytes[i] = static_cast<std::byte>(i % 251 + 1);
  for (size_t at = 0; at < kAlignments; ++at) {
    for (size_t size = 0; size <= kSizeMost; ++size) {
      Memory to{};
      to.bytes.fill(kUntouched);
      const size_t other_at = size % 3;  // The private side has any alignment.
      const auto [from_at, to_at] = copy(from.bytes.data(), to.bytes.data(), at, other_at, size);
      for (size_t i = 0; i < to.bytes.size(); ++i) {
        const bool inside = i >= to_at && i < to_at + size;
        ASSERT_EQ(to.bytes[i], inside ? from.bytes[from_at + i - to_at] : kUntouched)
            << size << " bytes, alignment " << at << ", byte " << i;
      }
    }
  }
}

struct Places {
  size_t from_at;
  size_t to_at;
};

TEST(CopyTest, EachSizeArrivesInSharedMemoryAndNothingElseChanges) {
  CopyAll([](const std::byte* from, std::byte* to, size_t shared_at, size_t private_at, size_t size) {
    shm::CopyToShared(to + shared_at, from + private_at, size);
    return Places{private_at, shared_at};
  });
}

TEST(CopyTest, EachSizeArrivesFromSharedMemoryAndNothingElseChanges) {
  CopyAll([](const std::byte* from, std::byte* to, size_t shared_at, size_t private_at, size_t size) {
    shm::CopyFromShared(to + private_at, from + shared_at, size);
    return Places{shared_at, private_at};
  });
}

}  // namespace
}  // namespace erda::fabric
