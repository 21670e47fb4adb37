// An object: one version of one key.
//
//   byte 0        4     6     7       8            12          16           24            32
//   +------------+-----+-----+-------+------------+-----------+------------+-------------+
//   | header crc | key | kind| flags | value size | previous  | version    | key hash    |
//   |            | size|     |       |            | address   |            |             |
//   +------------+-----+-----+-------+------------+-----------+------------+-------------+
//   | label ...          | checksum (4) | value ...            | unused up to a granule   |
//   +--------------------+--------------+----------------------+--------------------------+
//     written by the       written by the writer of the value
//     server, with the     (the client on the reserve path)
//     header
//
// The label is the key. If the version expires, its deadline comes before the key, in 8 bytes. The deadline is in
// milliseconds of Unix time by the server's clock (base/server_time.h). From then on the key is absent.
// The header crc covers the place, the header after the crc, and the label. These are all bytes that the server wrote
// when it reserved the space. The place is the pool, the head, the address, and the generation of the region. The
// checksum continues from the header crc, and covers the value. So it stands for the place, the header, the key and the
// value. Bytes of another place, another time or another pool do not verify. A reader still compares the key: a
// checksum finds damage, it does not identify. The checksums do not cover kLeft, which the shard sets when the entry
// names another version.
//
// A chunk is space in the log for the objects of one client (docs/protocol.md, "Put, delegated"). It has no key and no
// checksum. The objects stand one after the other where its value would be, from kChunkObjectsAt on. After them stand
// any bytes that the client has written there. The client can write headers there, too, and knows all bytes that their
// crc covers. So a walk goes by the chunk's header alone. The chunk ends where that header says. The walk takes no
// object in the chunk for longer than the chunk, and no header in it for that of another chunk.
//
// previous: the address of the newest version when the shard published this one, in the same head. Or kNoAddress.
// version: grows with each object of a shard, and never repeats.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/planted.h"
#include "format/check.h"
#include "format/log_address.h"

namespace erda::format {

inline constexpr uint32_t kKeyBytesMax = 1024;
inline constexpr uint64_t kDeadlineBytes = sizeof(uint64_t);
inline constexpr uint64_t kLabelBytesMax = kDeadlineBytes + kKeyBytesMax;
constexpr uint64_t LabelSize(uint64_t key_size, bool expires) { return key_size + (expires ? kDeadlineBytes : 0); }

enum class ObjectKind : uint8_t {  // On NVM: do not renumber.
  kValue = 1,
  kTombstone = 2,  // A delete. It has no value.
  kChunk = 3,      // Space for objects. It is no version of any key.
};

struct ObjectHeader {
  static constexpr uint8_t kPersistedFlag = 1;      // The put asked for Ack::kPersisted.
  static constexpr uint8_t kFlushedByReadFlag = 2;  // The writer flushes the value itself (read-after-write).
  static constexpr uint8_t kExpiresFlag = 4;        // The label has a deadline.
  static constexpr uint8_t kWindowFlag = 8;         // Of a chunk: its client can write there, and nowhere else.
  // The version is left: the entry named it as new, and now names another one, or is about to. Readers by a known
  // location look at these bits. The shard never flushes them, and other readers ignore them (docs/protocol.md, I12).
  // The shard sets all four bits, and one of them is enough. No checksum covers them, and a flipped bit must not bring
  // back a version that was left.
  static constexpr uint8_t kLeft = 0xf0;

  uint32_t header_crc;
  uint16_t key_size;
  uint8_t kind;
  uint8_t flags;
  uint32_t value_size;
  uint32_t previous;
  uint64_t version;
  uint64_t key_hash;

  [[nodiscard]] constexpr bool persisted() const { return (flags & kPersistedFlag) != 0; }
  [[nodiscard]] constexpr bool flushed_by_read() const { return (flags & kFlushedByReadFlag) != 0; }
  [[nodiscard]] constexpr bool expires() const { return (flags & kExpiresFlag) != 0; }
  [[nodiscard]] constexpr uint64_t label_size() const { return LabelSize(key_size, expires()); }
  [[nodiscard]] constexpr uint64_t key_offset() const { return sizeof(ObjectHeader) + LabelSize(0, expires()); }
  [[nodiscard]] constexpr bool left() const { return (flags & kLeft) != 0; }
  [[nodiscard]] constexpr bool is(ObjectKind what) const { return kind == static_cast<uint8_t>(what); }
  [[nodiscard]] constexpr bool is_chunk() const { return is(ObjectKind::kChunk); }
  [[nodiscard]] constexpr bool is_value() const { return is(ObjectKind::kValue); }
  [[nodiscard]] constexpr bool has_window() const { return (flags & kWindowFlag) != 0; }
};
ERDA_FORMAT_SIZE(ObjectHeader, 32);
ERDA_FORMAT_FIELD(ObjectHeader, header_crc, 0);
ERDA_FORMAT_FIELD(ObjectHeader, key_size, 4);
ERDA_FORMAT_FIELD(ObjectHeader, kind, 6);
ERDA_FORMAT_FIELD(ObjectHeader, flags, 7);
ERDA_FORMAT_FIELD(ObjectHeader, value_size, 8);
ERDA_FORMAT_FIELD(ObjectHeader, previous, 12);
ERDA_FORMAT_FIELD(ObjectHeader, version, 16);
ERDA_FORMAT_FIELD(ObjectHeader, key_hash, 24);
// Returns the first word of a header with kLeft. The shard stores that word.
constexpr uint64_t WithLeft(uint64_t first_word) { return first_word | uint64_t{ObjectHeader::kLeft} << 56; }

inline constexpr uint64_t kChecksumBytes = 4;

inline constexpr uint64_t kLabelOffset = sizeof(ObjectHeader);
constexpr uint64_t ChecksumOffset(uint64_t label_size) { return kLabelOffset + label_size; }
constexpr uint64_t ValueOffset(uint64_t label_size) { return ChecksumOffset(label_size) + kChecksumBytes; }
// Return the size of an object without and with the unused bytes up to the next granule.
constexpr uint64_t ObjectBytes(uint64_t label_size, uint64_t value_size) {
  return ValueOffset(label_size) + value_size;
}
constexpr uint64_t ObjectSpace(uint64_t label_size, uint64_t value_size) {
  return (ObjectBytes(label_size, value_size) + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}

// The offset of the first object in a chunk, and the value size of a chunk of `space` bytes. The space is of whole
// granules.
inline constexpr uint64_t kChunkObjectsAt = ObjectSpace(0, 0);
constexpr uint64_t ChunkValueBytes(uint64_t space) { return space - ValueOffset(0); }

// Returns the space of the object with this header.
constexpr uint64_t SpaceOf(const ObjectHeader& header) { return ObjectSpace(header.label_size(), header.value_size); }

// The place of an object. The checksums cover it.
struct Place {
  uint32_t pool_seed;  // PoolSeed(uuid).
  uint32_t head;
  LogAddress address;
  uint32_t generation;  // The generation of the region.
};
[[nodiscard]] uint32_t PoolSeed(std::span<const uint8_t, 16> uuid);

// Returns the header's crc. Ignores header.header_crc and kLeft. Makes the words that it covers of the fields: a load
// of the header as it was stored could wait for the store buffer.
[[nodiscard]] inline uint32_t HeaderCrc(const Place& place, const ObjectHeader& header, std::string_view key,
                                        uint64_t deadline = 0) {
  static_assert(std::endian::native == std::endian::little && sizeof(ObjectHeader) == 32);
  const uint32_t address = Planted(Flaw::kCrcWithoutPlace) ? 0 : place.address.raw();
  const auto flags = static_cast<uint8_t>(header.flags & ~ObjectHeader::kLeft);
  const uint32_t kinds = header.key_size | uint32_t{header.kind} << 16 | uint32_t{flags} << 24;
  const uint64_t where = place.head | uint64_t{address} << 32;
  const uint64_t what = place.generation | uint64_t{kinds} << 32;
  const uint64_t size = header.value_size | uint64_t{header.previous} << 32;
  const auto of_key = AsBytes(key);
  return header.expires()
             ? Crc32cOfWords(place.pool_seed, of_key, where, what, size, header.version, header.key_hash, deadline)
             : Crc32cOfWords(place.pool_seed, of_key, where, what, size, header.version, header.key_hash);
}
// Returns the checksum of the object. REQUIRES: header.header_crc is set.
[[nodiscard]] uint32_t ObjectChecksum(const ObjectHeader& header, std::span<const std::byte> value);
// Returns the same checksum by the CRC32C of the value, if the value itself is not at hand.
[[nodiscard]] uint32_t ObjectChecksumOf(const ObjectHeader& header, uint32_t value_crc);

// The part of an object that can be trusted.
enum class ObjectState : uint8_t {
  kNothing,  // Not even the header. Another thing is at the place, or the bytes are damaged or out of bounds.
  kHeader,   // Header and label are as the server wrote them. The value is not there (yet).
  kWhole,
};
struct ObjectView {
  ObjectState state = ObjectState::kNothing;
  ObjectHeader header{};
  std::string_view key;              // Not valid if the state is kNothing.
  uint64_t deadline = 0;             // 0 if the version has no deadline, or if the state is kNothing.
  std::span<const std::byte> value;  // Valid if the state is kWhole.
  // The bytes that the caller needs for another look, if the span had fewer than the object takes. The state is then
  // kNothing.
  uint64_t bytes_wanted = 0;
};
// Checks bytes read from a place. Safe on any bytes. A chunk is never whole.
[[nodiscard]] ObjectView InspectObject(const Place& place, std::span<const std::byte> bytes);
// As InspectObject, but does not look at the value. The state is kNothing or kHeader.
[[nodiscard]] ObjectView InspectHeader(const Place& place, std::span<const std::byte> bytes);
// As InspectHeader, for bytes that may end after the label.
[[nodiscard]] ObjectView InspectLabel(const Place& place, std::span<const std::byte> bytes);
// Returns how many of these bytes come before the first granule that may begin a value's header. At each granule before
// that one, InspectLabel finds no header, or the header of another kind. Looks at one word of each granule.
// REQUIRES: the bytes are 8-byte aligned, and whole granules.
[[nodiscard]] uint64_t BytesWithoutValue(std::span<const std::byte> bytes);

}  // namespace erda::format
