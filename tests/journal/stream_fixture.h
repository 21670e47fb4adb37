// For the tests of the stream: memory that a child of a fork shares, and the entries that a stream has.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "journal/entry.h"

namespace erda::journal {

// Zeroed pages that a child of a fork shares with the test.
class SharedPages {
 public:
  explicit SharedPages(size_t size)
      : at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), size_(size) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages() { ::munmap(at_, size_); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_}; }

 private:
  void* at_;
  size_t size_;
};

// A copy of an entry.
struct FoundEntry {
  EntryKind kind;
  uint64_t offset;
  uint64_t size;
  std::string bytes;
  bool fenced = false;
  static FoundEntry Bytes(uint64_t offset, std::string bytes) {
    return {EntryKind::kBytes, offset, bytes.size(), std::move(bytes)};
  }
  [[nodiscard]] FoundEntry AfterFence() const {
    FoundEntry entry = *this;
    entry.fenced = true;
    return entry;
  }
  static FoundEntry Zeroes(uint64_t offset, uint64_t size) { return {EntryKind::kZeroes, offset, size, ""}; }
  friend bool operator==(const FoundEntry&, const FoundEntry&) = default;
};
inline void PrintTo(const FoundEntry& found, std::ostream* out) {
  *out << "kind " << static_cast<uint32_t>(found.kind) << ", " << found.size << " bytes at " << found.offset
       << (found.fenced ? " after a fence" : "");
}

// Returns the entries of all pieces. Fails the test if a piece does not have whole entries alone.
template <class Pieces>
std::vector<FoundEntry> EntriesIn(const Pieces& pieces, uint64_t pool_size) {
  std::vector<FoundEntry> found;
  for (const std::span<const std::byte> piece : pieces) {
    EXPECT_TRUE(ForEachEntry(piece, pool_size, [&found](const Entry& entry) {
      found.push_back({entry.kind, entry.offset, entry.size, std::string(AsString(entry.bytes)), entry.fenced});
    }));
  }
  return found;
}

}  // namespace erda::journal
