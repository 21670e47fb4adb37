// CRC32C (Castagnoli), by Intel ISA-L. For short pieces, by the processor's instruction; without the instruction, by a
// table.
//
// Objects of small values are short pieces, so the code for them is inline. The header calls the instruction by name:
// a function with a target attribute would not be inlined into the code of a processor without it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace erda {

namespace crc32c {

// The size up to which the loop over words is faster: headers, keys and small values. For longer pieces ISA-L computes
// several strands and folds them together.
inline constexpr size_t kShortBytes = 256;

// Does the same as Crc32c, for any size and on any processor.
[[nodiscard]] uint32_t OfAny(uint32_t crc, std::span<const std::byte> bytes);

#if defined(__x86_64__)
// True if the processor has the instruction. It is false until the program has started, and the table serves then.
extern const bool kHasInstruction;

// Takes one more word, or a part of one, into the state. REQUIRES: the processor has the instruction. The assembler
// code is volatile, because the compiler would otherwise compute it before the caller asks what the processor has.
inline uint64_t Take(uint64_t state, uint64_t word) {
  asm volatile("crc32q %1, %0" : "+r"(state) : "r"(word));
  return state;
}
inline uint32_t Take(uint32_t state, uint32_t word) {
  asm volatile("crc32l %1, %0" : "+r"(state) : "r"(word));
  return state;
}
inline uint32_t Take(uint32_t state, uint16_t word) {
  asm volatile("crc32w %1, %0" : "+r"(state) : "r"(word));
  return state;
}
inline uint32_t Take(uint32_t state, uint8_t byte) {
  asm volatile("crc32b %1, %0" : "+r"(state) : "q"(byte));
  return state;
}

template <class Word>
Word Load(const std::byte* from) {
  static_assert(std::endian::native == std::endian::little);
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Takes the bytes into the state. REQUIRES: the processor has the instruction.
inline uint32_t TakeShort(uint32_t state, std::span<const std::byte> bytes) {
  constexpr size_t kWord = sizeof(uint64_t);
  const std::byte* at = bytes.data();
  uint64_t wide = state;
  const std::byte* const end_of_fours = at + bytes.size() / (4 * kWord) * (4 * kWord);
  for (; at != end_of_fours; at += 4 * kWord) {
    for (size_t i = 0; i < 4; ++i) wide = Take(wide, Load<uint64_t>(at + i * kWord));
  }
  const std::byte* const end_of_words = bytes.data() + bytes.size() / kWord * kWord;
  for (; at != end_of_words; at += kWord) wide = Take(wide, Load<uint64_t>(at));
  auto narrow = static_cast<uint32_t>(wide);
  const size_t rest = bytes.size() % kWord;
  if (rest == 0) return narrow;
  if ((rest & 4) != 0) narrow = Take(narrow, Load<uint32_t>(at));
  if ((rest & 2) != 0) narrow = Take(narrow, Load<uint16_t>(at + (rest & 4)));
  if ((rest & 1) != 0) narrow = Take(narrow, Load<uint8_t>(at + (rest & 6)));
  return narrow;
}
#endif

}  // namespace crc32c

// Returns the checksum of the bytes that `crc` covers, followed by these bytes. 0 starts a checksum: Crc32c(Crc32c(0,
// a), b) == Crc32c(0, a + b).
[[nodiscard]] inline uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (bytes.size() <= crc32c::kShortBytes && crc32c::kHasInstruction) [[likely]]
    return ~crc32c::TakeShort(~crc, bytes);
#endif
  return crc32c::OfAny(crc, bytes);
}

// Returns the same as Crc32c of the words followed by the bytes, which are few. The words need not stand in memory.
template <class... Words>
[[nodiscard]] uint32_t Crc32cOfWords(uint32_t crc, std::span<const std::byte> bytes, Words... words) {
#if defined(__x86_64__)
  if (bytes.size() <= crc32c::kShortBytes && crc32c::kHasInstruction) [[likely]] {
    uint64_t state = ~crc;
    ((state = crc32c::Take(state, uint64_t{words})), ...);
    return ~crc32c::TakeShort(static_cast<uint32_t>(state), bytes);
  }
#endif
  const std::array<uint64_t, sizeof...(Words)> all = {words...};
  return Crc32c(Crc32c(crc, std::as_bytes(std::span(all))), bytes);
}

// Returns the checksum of two ranges, one after the other. `crc` covers the first range. `crc_behind`, started with 0,
// covers the second one, which has `bytes` bytes.
[[nodiscard]] uint32_t Crc32cOfBoth(uint32_t crc, uint32_t crc_behind, uint64_t bytes);

// Computes the same as Crc32c by the table alone, on any processor.
[[nodiscard]] uint32_t Crc32cByTable(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace erda
