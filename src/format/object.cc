#include "format/object.h"

#include <bit>
#include <span>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"

namespace erda::format {

uint32_t PoolSeed(std::span<const uint8_t, 16> uuid) { return Crc32c(0, std::as_bytes(uuid)); }

uint32_t ObjectChecksum(const ObjectHeader& header, std::span<const std::byte> value) {
  return Crc32c(header.header_crc, value);
}

uint32_t ObjectChecksumOf(const ObjectHeader& header, uint32_t value_crc) {
  return Crc32cOfBoth(header.header_crc, value_crc, header.value_size);
}

namespace {

// Loads each word of an aligned header as one, since the shard may store the first word with kLeft meanwhile. In the
// log a header is aligned. Next to damage, the cleaner looks at any granule as if it began an object. Then any of the
// four words may be the first word of an object.
ObjectHeader LoadHeader(std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) != 0) return LoadAs<ObjectHeader>(bytes);
  const auto* from = reinterpret_cast<const uint64_t*>(bytes.data());
  const auto word = [from](size_t i) { return __atomic_load_n(from + i, __ATOMIC_RELAXED); };
  const uint64_t first = word(0);
  const uint64_t second = word(1);
  ObjectHeader header;
  header.header_crc = static_cast<uint32_t>(first);
  header.key_size = static_cast<uint16_t>(first >> 32);
  header.kind = static_cast<uint8_t>(first >> 48);
  header.flags = static_cast<uint8_t>(first >> 56);
  header.value_size = static_cast<uint32_t>(second);
  header.previous = static_cast<uint32_t>(second >> 32);
  header.version = word(2);
  header.key_hash = word(3);
  return header;
}

// A value has a key. Its size and the kind stand in bytes 4 to 6 of the header.
bool MayBeginValue(uint64_t first_word) {
  constexpr uint32_t kKindAndNoKey = uint32_t{static_cast<uint8_t>(ObjectKind::kValue)} << 16;
  const uint32_t kind_and_key_size = static_cast<uint32_t>(first_word >> 32) & 0xffffff;
  return kind_and_key_size - kKindAndNoKey - 1 < kKeyBytesMax;
}

}  // namespace

// The shard may store the first word of an object with kLeft meanwhile.
uint64_t BytesWithoutValue(std::span<const std::byte> bytes) {
  constexpr size_t kAtOnce = 4;
  constexpr size_t kWordsEach = kGranuleBytes / sizeof(uint64_t);
  const size_t granules = bytes.size() / kGranuleBytes;
  const auto* const words = reinterpret_cast<const uint64_t*>(bytes.data());
  const auto may_begin = [words](size_t granule) {
    return MayBeginValue(__atomic_load_n(words + granule * kWordsEach, __ATOMIC_RELAXED));
  };
  size_t granule = 0;
  for (; granule + kAtOnce <= granules; granule += kAtOnce) {
    bool any = false;
    for (size_t i = 0; i < kAtOnce; ++i) any |= may_begin(granule + i);
    if (any) break;
  }
  while (granule < granules && !may_begin(granule)) ++granule;
  return granule * kGranuleBytes;
}

ObjectView InspectLabel(const Place& place, std::span<const std::byte> bytes) {
  ObjectView view;
  if (bytes.size() < sizeof(ObjectHeader)) {
    view.bytes_wanted = sizeof(ObjectHeader);
    return view;
  }
  view.header = LoadHeader(bytes);
  const ObjectHeader& header = view.header;
  if ((header.key_size == 0) != header.is_chunk() || header.key_size > kKeyBytesMax) return view;
  const uint64_t label_size = header.label_size();
  const uint64_t checksum_at = ChecksumOffset(label_size);
  if (bytes.size() < checksum_at) {
    view.bytes_wanted = checksum_at;
    return view;
  }
  view.key = AsString(bytes.subspan(checksum_at - header.key_size, header.key_size));
  const uint64_t deadline = header.expires() ? LoadAs<uint64_t>(bytes.subspan(kLabelOffset)) : 0;
  if (HeaderCrc(place, header, view.key, deadline) != header.header_crc) return view;
  view.deadline = deadline;
  view.state = ObjectState::kHeader;
  return view;
}

ObjectView InspectHeader(const Place& place, std::span<const std::byte> bytes) {
  ObjectView view = InspectLabel(place, bytes);
  if (view.state == ObjectState::kNothing) return view;
  const uint64_t size = ObjectBytes(view.header.label_size(), view.header.value_size);
  if (bytes.size() < size) {
    view.bytes_wanted = size;
    view.state = ObjectState::kNothing;
  }
  return view;
}

ObjectView InspectObject(const Place& place, std::span<const std::byte> bytes) {
  ObjectView view = InspectHeader(place, bytes);
  if (view.state == ObjectState::kNothing || view.header.is_chunk()) return view;
  const ObjectHeader& header = view.header;
  const auto checksum = LoadAs<uint32_t>(bytes.subspan(ChecksumOffset(header.label_size())));
  const auto value = bytes.subspan(ValueOffset(header.label_size()), header.value_size);
  if (ObjectChecksum(header, value) != checksum) return view;
  view.state = ObjectState::kWhole;
  view.value = value;
  return view;
}

}  // namespace erda::format
