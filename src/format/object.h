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
// The label is the key; before it, if the version expires, 8 bytes: its deadline, in milliseconds of Unix time by the
// server's clock (base/server_time.h). From then on the key is absent.
// The header crc covers the place (pool, head, address, and which use of its region this is), the header behind it and
// the label: what the server wrote when it reserved the space. The checksum goes on from the header crc and covers the
// value: so it stands for the place, the header, the key and the value. Bytes that belong to another place, another
// time or another pool do not verify. A reader still compares the key: a checksum finds damage, it does not identify.
// One thing in the header they do not cover: kLeft, which the shard sets when the entry goes on to another version.
// A chunk is space in the log that was given to a client for objects of its own (docs/protocol.md, "Put, delegated").
// It has no key and no checksum; the objects stand one behind the other where its value would be, from kChunkObjectsAt
// on, and behind them is whatever the client has written there. The client can write headers there, too, and knows all
// that their crc covers. So a walk goes by the chunk's own header alone: it ends the chunk where that says, takes no
// object in it for longer than the chunk, and no chunk in it for one. previous: the version that was the newest when
// this one was published (an address in the same head), or none. version: grows with each object of a shard, and never
// repeats.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "format/check.h"
#include "format/log_address.h"

namespace erda::format {

inline constexpr uint32_t kKeyBytesMax = 1024;
inline constexpr uint64_t kDeadlineBytes = sizeof(uint64_t);
inline constexpr uint64_t kLabelBytesMax = kDeadlineBytes + kKeyBytesMax;
constexpr uint64_t LabelSize(uint64_t key_size, bool expires) { return key_size + (expires ? kDeadlineBytes : 0); }

enum class ObjectKind : uint8_t {  // on NVM: do not renumber
  kValue = 1,
  kTombstone = 2,  // a delete; without a value
  kChunk = 3,      // space for objects, and no version of anything
};

struct ObjectHeader {
  static constexpr uint8_t kPersistedFlag = 1;      // the put asked for Ack::kPersisted
  static constexpr uint8_t kFlushedByReadFlag = 2;  // and its writer flushes the value itself (read-after-write)
  static constexpr uint8_t kExpiresFlag = 4;        // its label has a deadline
  static constexpr uint8_t kWindowFlag = 8;         // a chunk: its client can write there and nowhere else
  // The entry named it as new, and names another version now, or is about to: for readers who come without the entry.
  // Never flushed, and says nothing true or false to one who knows of no place (docs/protocol.md, I12). All four bits
  // are set, and one of them is enough: no checksum covers them, and a flipped bit must not bring back what was left.
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
// The first word of a header, with kLeft: what the shard stores.
constexpr uint64_t WithLeft(uint64_t first_word) { return first_word | uint64_t{ObjectHeader::kLeft} << 56; }

inline constexpr uint64_t kChecksumBytes = 4;

inline constexpr uint64_t kLabelOffset = sizeof(ObjectHeader);
constexpr uint64_t ChecksumOffset(uint64_t label_size) { return kLabelOffset + label_size; }
constexpr uint64_t ValueOffset(uint64_t label_size) { return ChecksumOffset(label_size) + kChecksumBytes; }
// Without / with the unused bytes up to the next granule.
constexpr uint64_t ObjectBytes(uint64_t label_size, uint64_t value_size) {
  return ValueOffset(label_size) + value_size;
}
constexpr uint64_t ObjectSpace(uint64_t label_size, uint64_t value_size) {
  return (ObjectBytes(label_size, value_size) + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}

// Where the first object of a chunk begins, and the value size of a chunk that takes so much space, in granules.
inline constexpr uint64_t kChunkObjectsAt = ObjectSpace(0, 0);
constexpr uint64_t ChunkValueBytes(uint64_t space) { return space - ValueOffset(0); }

// Of the object with this header.
constexpr uint64_t SpaceOf(const ObjectHeader& header) { return ObjectSpace(header.label_size(), header.value_size); }

// What the checksums bind an object to.
struct Place {
  uint32_t pool_seed;  // PoolSeed(uuid)
  uint32_t head;
  LogAddress address;
  uint32_t generation;  // of the region, which grows each time it is used anew
};
[[nodiscard]] uint32_t PoolSeed(std::span<const uint8_t, 16> uuid);

// The header's crc; ignores header.header_crc and kLeft.
[[nodiscard]] uint32_t HeaderCrc(const Place& place, const ObjectHeader& header, std::string_view key,
                                 uint64_t deadline = 0);
// Covers place, header and label by way of header.header_crc, which must be set.
[[nodiscard]] uint32_t ObjectChecksum(const ObjectHeader& header, std::span<const std::byte> value);
// The same, of a value of which only the CRC32C is at hand.
[[nodiscard]] uint32_t ObjectChecksumOf(const ObjectHeader& header, uint32_t value_crc);

// How much of an object can be trusted.
enum class ObjectState : uint8_t {
  kNothing,  // not even the header: the place holds something else by now, or the bytes are damaged or out of bounds
  kHeader,   // header and label are what the server wrote; the value is not there (yet)
  kWhole,
};
struct ObjectView {
  ObjectState state = ObjectState::kNothing;
  ObjectHeader header{};
  std::string_view key;              // if not kNothing
  uint64_t deadline = 0;             // 0 if it has none, or none that can be trusted
  std::span<const std::byte> value;  // if kWhole
  // Bytes that the object takes, if they were fewer than that: kNothing so far, look again with as many.
  uint64_t bytes_wanted = 0;
};
// Checks bytes read from a place. Safe on any bytes whatever. A chunk is never whole.
[[nodiscard]] ObjectView InspectObject(const Place& place, std::span<const std::byte> bytes);
// The same but for the value, which it does not look at: kNothing or kHeader.
[[nodiscard]] ObjectView InspectHeader(const Place& place, std::span<const std::byte> bytes);
// The same of bytes that may end behind the label.
[[nodiscard]] ObjectView InspectLabel(const Place& place, std::span<const std::byte> bytes);

}  // namespace erda::format
