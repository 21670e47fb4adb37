// The meaning of a fuzzer's input: it chooses one of a few pools, and changes to it. So inputs are small. They get past
// checksums, since a change of a superblock or object can correct its checksum.
//
//   byte 0   which pool
//   byte 1   what is done with it (targets.h)
//   then     changes of 16 bytes: place (1), operation (1), 0 (2), index (4), value (8)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/random.h"
#include "fuzz/pool_server.h"

namespace erda::fuzz {

inline constexpr uint32_t kPools = 6;
inline constexpr size_t kInputHeaderBytes = 2;
inline constexpr size_t kChangeBytes = 16;
inline constexpr size_t kChangesMax = 24;
inline constexpr size_t kInputBytesMax = kInputHeaderBytes + kChangesMax * kChangeBytes;

// The keys of the pools, and their values, which begin with the key.
inline constexpr int kKeys = 12;
[[nodiscard]] std::string KeyAt(int number);
[[nodiscard]] std::string ValueOf(const std::string& key, int version, size_t size);

struct Input {
  Image image;
  uint8_t todo = 0;
  bool forged = false;  // an object got a correct checksum for a content that nobody put
  size_t changes = 0;
  bool other_table = false;  // The region table differs from the pool's table. No checksum protects its words.
};
[[nodiscard]] Input Decode(std::span<const uint8_t> bytes);

// One change of an input. The operation's highest bit says whether a checksum is corrected.
struct Change {
  uint8_t place;
  uint8_t operation;
  uint16_t reserved;
  uint32_t index;
  uint64_t value;
};
static_assert(sizeof(Change) == kChangeBytes);

// Returns the word after one of the kinds of change that fit every word: 0 to 3. Returns nothing for other kinds.
[[nodiscard]] std::optional<uint64_t> PlainlyChanged(unsigned kind, uint64_t value, uint64_t old);

inline constexpr uint8_t kPlaces = 8;
// Changes the input a little, or adds a random change, at one of that many kinds of places. The input stays at most
// kInputBytesMax long.
void Mutate(std::string* input, Random* random, uint8_t places = kPlaces);

}  // namespace erda::fuzz
