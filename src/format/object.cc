#include "format/object.h"

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"

namespace erda::format {

uint32_t PoolSeed(std::span<const uint8_t, 16> uuid) { return Crc32c(0, std::as_bytes(uuid)); }

uint32_t HeaderCrc(const Place& place, const ObjectHeader& header, std::string_view key) {
  // Place and header in one piece: each piece costs a call.
  constexpr size_t kPlaceBytes = 3 * sizeof(uint32_t);
  constexpr size_t kCovered = sizeof(ObjectHeader) - sizeof(header.header_crc);
  std::array<std::byte, kPlaceBytes + kCovered> piece;
  const uint32_t words[3] = {place.head, Planted(Flaw::kCrcWithoutPlace) ? 0 : place.address.raw(), place.generation};
  std::memcpy(piece.data(), words, kPlaceBytes);
  std::memcpy(piece.data() + kPlaceBytes, BytesOf(header).data() + sizeof(header.header_crc), kCovered);
  piece[kPlaceBytes + offsetof(ObjectHeader, flags) - sizeof(header.header_crc)] &= ~std::byte{ObjectHeader::kLeft};
  return Crc32c(Crc32c(place.pool_seed, piece), AsBytes(key));
}

uint32_t ObjectChecksum(const ObjectHeader& header, std::span<const std::byte> value) {
  return Crc32c(header.header_crc, value);
}

uint32_t ObjectChecksumOf(const ObjectHeader& header, uint32_t value_crc) {
  return Crc32cOfBoth(header.header_crc, value_crc, header.value_size);
}

namespace {

// The shard may set kLeft meanwhile, by a store of the first word; in the log it is aligned. (All words: beside damage
// the cleaner looks at any granule as if it began an object, and the next object's first word may be among these.)
ObjectHeader LoadHeader(std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) != 0) return LoadAs<ObjectHeader>(bytes);
  std::array<uint64_t, sizeof(ObjectHeader) / sizeof(uint64_t)> words;
  const auto* from = reinterpret_cast<const uint64_t*>(bytes.data());
  for (size_t i = 0; i < words.size(); ++i) words[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
  return LoadAs<ObjectHeader>(std::as_bytes(std::span(words)));
}

}  // namespace

ObjectView InspectHeader(const Place& place, std::span<const std::byte> bytes) {
  ObjectView view;
  if (bytes.size() < sizeof(ObjectHeader)) {
    view.bytes_wanted = sizeof(ObjectHeader);
    return view;
  }
  view.header = LoadHeader(bytes);
  const ObjectHeader& header = view.header;
  if ((header.key_size == 0) != header.is_chunk() || header.key_size > kKeyBytesMax) return view;
  const uint64_t checksum_at = ChecksumOffset(header.key_size);
  if (bytes.size() < checksum_at) {
    view.bytes_wanted = checksum_at;
    return view;
  }
  view.key = AsString(bytes.subspan(KeyOffset(), header.key_size));
  if (HeaderCrc(place, header, view.key) != header.header_crc) return view;

  const uint64_t size = ObjectBytes(header.key_size, header.value_size);
  if (bytes.size() < size) {
    view.bytes_wanted = size;
    return view;
  }
  view.state = ObjectState::kHeader;
  return view;
}

ObjectView InspectObject(const Place& place, std::span<const std::byte> bytes) {
  ObjectView view = InspectHeader(place, bytes);
  if (view.state == ObjectState::kNothing || view.header.is_chunk()) return view;
  const ObjectHeader& header = view.header;
  const auto checksum = LoadAs<uint32_t>(bytes.subspan(ChecksumOffset(header.key_size)));
  const auto value = bytes.subspan(ValueOffset(header.key_size), header.value_size);
  if (ObjectChecksum(header, value) != checksum) return view;
  view.state = ObjectState::kWhole;
  view.value = value;
  return view;
}

}  // namespace erda::format
