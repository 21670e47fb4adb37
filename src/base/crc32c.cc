#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace erda {

namespace {

using crc32c::kShortBytes;

// kTable[k][b] is the part of the byte b in the new state, if k more bytes of the same step follow it.
using Table = std::array<std::array<uint32_t, 256>, 2 * sizeof(uint64_t)>;

constexpr uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41, reflected.

constexpr Table MakeTable() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
    table[0][byte] = state;
  }
  for (size_t k = 1; k < table.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[k - 1][byte];
      table[k][byte] = (before >> 8) ^ table[0][before & 0xff];
    }
  }
  return table;
}

alignas(4096) constexpr Table kTable = MakeTable();

// Multiplies two polynomials over GF(2) modulo kPolynomial. They are reflected: the highest bit is the coefficient of
// x^0.
constexpr uint32_t Product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// kSteps[i] is x^(8 * 2^i): the factor of a state when 2^i zero bytes follow.
constexpr std::array<uint32_t, 64> kSteps = [] {
  std::array<uint32_t, 64> steps{};
  uint32_t step = 1U << (31 - 8);
  for (uint32_t& to : steps) {
    to = step;
    step = Product(step, step);
  }
  return steps;
}();

// Returns the part of a word's bytes in the new state, if `Behind` more bytes of the same step follow them.
template <size_t Behind, class Word>
uint32_t OfWord(Word word) {
  uint32_t state = 0;
  for (size_t i = 0; i < sizeof(word); ++i) {
    state ^= kTable[Behind + sizeof(word) - 1 - i][word & 0xff];
    word >>= 8;
  }
  return state;
}

template <class Word>
Word LoadWord(const std::byte* bytes) {
  static_assert(std::endian::native == std::endian::little);
  Word word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint32_t StateByTable(uint32_t state, const std::byte* bytes, size_t size) {
  constexpr size_t kWord = sizeof(uint64_t);
  // A short piece uses only the table's first page, since the table is often not in the cache.
  if (size > kShortBytes) {
    for (; size >= 2 * kWord; size -= 2 * kWord, bytes += 2 * kWord) {
      state = OfWord<kWord>(LoadWord<uint64_t>(bytes) ^ state) ^ OfWord<0>(LoadWord<uint64_t>(bytes + kWord));
    }
  }
  for (; size >= sizeof(uint32_t); size -= sizeof(uint32_t), bytes += sizeof(uint32_t)) {
    state = OfWord<0>(LoadWord<uint32_t>(bytes) ^ state);
  }
  for (; size > 0; --size, ++bytes) {
    state = (state >> 8) ^ kTable[0][(state ^ std::to_integer<uint32_t>(*bytes)) & 0xff];
  }
  return state;
}

// Without the instruction, ISA-L takes one byte at a time. The table is 6 times as fast then; in an emulator, 4 times.
#if defined(__x86_64__)
bool IsForTable(size_t /*size*/) { return !crc32c::kHasInstruction; }
#else
bool IsForTable(size_t size) { return size <= kShortBytes; }
#endif

}  // namespace

#if defined(__x86_64__)
const bool crc32c::kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
#endif

uint32_t Crc32cByTable(uint32_t crc, std::span<const std::byte> bytes) {
  return ~StateByTable(~crc, bytes.data(), bytes.size());
}

uint32_t crc32c::OfAny(uint32_t crc, std::span<const std::byte> bytes) {
  if (IsForTable(bytes.size())) return Crc32cByTable(crc, bytes);
  uint32_t state = ~crc;
  // ISA-L takes the length as an int and a pointer that is not const. It leaves the inversions to the caller.
  constexpr size_t kStepBytes = size_t{1} << 30;
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kStepBytes);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

// A checksum is linear except for its initial state. crc_behind shares that initial state with as many zero bytes.
uint32_t Crc32cOfBoth(uint32_t crc, uint32_t crc_behind, uint64_t bytes) {
  for (; bytes != 0; bytes &= bytes - 1) crc = Product(kSteps[static_cast<size_t>(std::countr_zero(bytes))], crc);
  return crc ^ crc_behind;
}

}  // namespace erda
