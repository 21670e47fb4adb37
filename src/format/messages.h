// The requests of clients and the answers of the server, once they are connected (hello.h). Little-endian, in place, no
// padding.
//
// A request: the client writes a Request, the key, and for an inline put the value, into one of its request slots on
// the server. It writes by WriteImm, with the slot's number as immediate. The answer: the server writes a Reply into
// the same slot number of the client's reply memory, by WriteImm with that number. A slot has one request at a time.
//
// The server revokes a chunk by a WriteImm without bytes and without a request. Its immediate is kRevokes and the
// address of the chunk. The client may not use the chunk any more, and gives it back.
//
// Any client asks for the server's time by a WriteImm without bytes. Its immediate is kAsksTime and the number of a
// slot. The Reply's number is the time, its id 0. A client that may only read has no slots on the server, and sends
// this message alone.
//
//   Request   0     1     2         4            8      16          24       28     32       40    44  48
//             +-----+-----+---------+------------+------+-----------+--------+------+--------+-----+---+
//             | op  | ack | key size| value size | id   | key hash  | address| head | version| crc | if|
//             +-----+-----+---------+------------+------+-----------+--------+------+--------+-----+---+
//             48    56
//             +-----+---------------+
//             | ttl | key, 4, value |
//             +-----+---------------+
//   Reply     0      8      9        10    12        16     20   24            32                            64
//             +------+------+--------+-----+---------+------+----+-------------+-----------------------------+
//             | id   | code | reason | 0   | address | head | gen| number      | object header               |
//             +------+------+--------+-----+---------+------+----+-------------+-----------------------------+
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hash.h"
#include "format/check.h"
#include "format/geometry.h"
#include "format/object.h"

namespace erda::format {

// The operations of requests, and the fields that each has beside `id` and `ack`.
enum class RequestOp : uint8_t {
  // Key, value.
  kPutInline = 1,
  // Key, value size. The answer has address, head, and the header that the server wrote.
  kReserve = 2,
  // Key hash, address, head, version. The value is placed, and the shard makes it persistent.
  kCommit = 3,
  // Key.
  kDelete = 4,
  // Key. A reader found its newest version not whole.
  kReport = 5,
  // Any key of the shard. The shard cleans the log as far as that gains something.
  kClean = 6,
  // Head. Value size: the bytes of the chunk that the client wants. Version: the fewest bytes that the client can use.
  // The answer has the chunk's address and header.
  kDelegate = 7,
  // Key, value size, address, crc. The value is placed, for an object at that address of a chunk.
  kPutDelegated = 8,
  // Address, head, version. The client needs that chunk no more.
  kGiveBack = 9,
  // Key, and an inline value of 8 bytes, which the shard adds to the key's value. The answer has the sum.
  kIncrement = 10,
  // Key, value size, address. The value is in the staging buffer, from that byte on.
  kPutStaged = 11,
};

// The demand of a put inline or staged, a reserve or a delete. If the key does not meet it, the request changes
// nothing, and the answer is kConflict.
enum class Condition : uint8_t {
  kNone = 0,
  kVersion = 1,  // The key has the request's version. With version 0: the key is absent.
};

// An immediate with this bit has the address of a chunk, and no slot's number: the shard revokes the chunk.
inline constexpr uint32_t kRevokes = 1U << 31;
// An immediate with this bit has a slot's number. The message has no bytes, and asks for the server's time.
inline constexpr uint32_t kAsksTime = 1U << 30;
// The most chunks that a client may have, with the revoked ones that it has not given back.
inline constexpr uint32_t kChunksPerClient = 16;
constexpr uint64_t ChunkBytesMax(const Geometry& geometry) {
  return std::min<uint64_t>(1 << 20, geometry.segment_size / 4);
}

struct Request {
  uint8_t op;
  uint8_t ack;  // An Ack.
  uint16_t key_size;
  uint32_t value_size;
  uint64_t id;         // The reply has the same.
  uint64_t key_hash;   // For kCommit.
  uint32_t address;    // For kCommit, kPutDelegated, kGiveBack and kPutStaged.
  uint32_t head;       // For kCommit, kDelegate and kGiveBack.
  uint64_t version;    // For kCommit, kDelegate, kGiveBack, and for a condition.
  uint32_t value_crc;  // For kPutDelegated: the CRC32C of the value.
  uint8_t condition;   // A Condition.
  std::array<uint8_t, 3> reserved;
  uint64_t ttl;  // For a put: the milliseconds after which the value expires, or 0 for never.
};
ERDA_FORMAT_SIZE(Request, 56);
ERDA_FORMAT_FIELD(Request, key_size, 2);
ERDA_FORMAT_FIELD(Request, value_size, 4);
ERDA_FORMAT_FIELD(Request, id, 8);
ERDA_FORMAT_FIELD(Request, key_hash, 16);
ERDA_FORMAT_FIELD(Request, address, 24);
ERDA_FORMAT_FIELD(Request, head, 28);
ERDA_FORMAT_FIELD(Request, version, 32);
ERDA_FORMAT_FIELD(Request, value_crc, 40);
ERDA_FORMAT_FIELD(Request, condition, 44);
ERDA_FORMAT_FIELD(Request, ttl, 48);

// Returns the offset of an inline value in its request.
constexpr uint64_t InlineValueOffset(uint64_t key_size) { return sizeof(Request) + key_size + kChecksumBytes; }

// The cause of a code, where the code alone does not tell it.
enum class Reason : uint8_t {
  kNone = 0,
  kIndexFull = 1,
  kLogFull = 2,
  kTooManyReservations = 3,  // The reply's number is the most that this client may have.
  kNotWhole = 4,             // A commit came, but the value is not there.
  kReadOnly = 5,             // The client has no right to write into the pool.
  kDamaged = 6,
  kNoChunk = 7,     // The shard gives no chunk, or revoked it. The put may take another path.
  kNotANumber = 8,  // The value to increment does not have 8 bytes.
  kOverflow = 9,    // The sum of an increment does not fit into 64 bits.
  // The disk of the pool's journal has failed. The shard changes nothing any more. The reply's number is the error
  // number (errno) of the system call that failed, or 0 if that is unknown. Servers of earlier versions send 0.
  kJournal = 10,
  kNoMirror = 11,  // No mirror of the pool is in sync. The shard changes nothing before one is.
};

struct Reply {
  uint64_t id;
  uint8_t code;    // A Code.
  uint8_t reason;  // A Reason.
  uint16_t reserved0;
  uint32_t address;  // The place of the put's version.
  uint32_t head;
  uint32_t generation;  // The generation of the region at `address`.
  // Its meaning is that of the reason. For kIncrement it is the sum. For kAsksTime it is the time, in microseconds of
  // Unix time. For kDelegate with Placing::kWindow it is the window's key.
  uint64_t number;
  // The header of a put's version. If the code is kConflict, `version` is the key's present version, or 0 for none.
  ObjectHeader header;
};
ERDA_FORMAT_SIZE(Reply, 64);
ERDA_FORMAT_FIELD(Reply, code, 8);
ERDA_FORMAT_FIELD(Reply, reason, 9);
ERDA_FORMAT_FIELD(Reply, address, 12);
ERDA_FORMAT_FIELD(Reply, head, 16);
ERDA_FORMAT_FIELD(Reply, generation, 20);
ERDA_FORMAT_FIELD(Reply, number, 24);
ERDA_FORMAT_FIELD(Reply, header, 32);

}  // namespace erda::format
