#include "inspect/checksum_back.h"

namespace erda::inspect {

namespace {

// A byte adds a word to the state of CRC32C. The tables give the byte and the word for the highest byte of that word.
struct Backwards {
  std::array<uint8_t, 256> byte{};
  std::array<uint32_t, 256> added{};
};

constexpr Backwards kBackwards = [] {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  Backwards table;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
    table.byte[state >> 24] = static_cast<uint8_t>(byte);
    table.added[state >> 24] = state;
  }
  return table;
}();

}  // namespace

uint32_t Crc32cBefore(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t state = ~crc;
  for (size_t i = bytes.size(); i-- > 0;) {
    const uint32_t high = state >> 24;
    const uint32_t low = uint32_t{kBackwards.byte[high]} ^ std::to_integer<uint32_t>(bytes[i]);
    state = (state ^ kBackwards.added[high]) << 8 | low;
  }
  return ~state;
}

CoveredBytes::CoveredBytes(const format::ObjectHeader& header, std::string_view key, uint64_t deadline, uint32_t head,
                           format::LogAddress address, uint32_t generation) {
  const auto flags = static_cast<uint8_t>(header.flags & ~format::ObjectHeader::kLeft);
  const uint32_t kinds = header.key_size | uint32_t{header.kind} << 16 | uint32_t{flags} << 24;
  const std::array<uint64_t, 6> words = {head | uint64_t{address.raw()} << 32,
                                         generation | uint64_t{kinds} << 32,
                                         header.value_size | uint64_t{header.previous} << 32,
                                         header.version,
                                         header.key_hash,
                                         deadline};
  size_ = (header.expires() ? 6 : 5) * sizeof(uint64_t);
  std::memcpy(bytes_.data(), words.data(), size_);
  std::memcpy(bytes_.data() + size_, key.data(), key.size());
  size_ += key.size();
}

}  // namespace erda::inspect
