// The messages of client and server. Little-endian, in place, no padding.
//
// Connecting: the client's private data is a HelloRequest, the server's a HelloReply if it accepts, and a HelloRefusal
// if not. A server that demands a token refuses the first HelloRequest with a HelloChallenge. The client connects once
// more, with the proof that it knows the token. The HelloReply proves that the server knows it (format/proof.h).
//
// A request: the client writes a Request, the key, and for an inline put the value, into one of its request slots on
// the server. It writes by WriteImm, with the slot's number as immediate. The answer: the server writes a Reply into
// the same slot number of the client's reply memory, by WriteImm with that number. A slot has one request at a time.
//
// The server revokes a chunk by a WriteImm without bytes and without a request. Its immediate is kTakesBack and the
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

inline constexpr uint32_t kHelloMagic = 0x61647245;  // "Erda"
inline constexpr uint16_t kProtocolVersion = 17;
inline constexpr uint32_t kSlotsMax = 256;

// The registered memory that the server offers to a client, by its number.
inline constexpr uint32_t kPoolRegion = 0;       // The pool, for Reads.
inline constexpr uint32_t kControlRegion = 1;    // The shard's control block, for Reads.
inline constexpr uint32_t kRequestRegion = 2;    // This client's request slots, for Writes.
inline constexpr uint32_t kPoolWriteRegion = 3;  // The pool, for Writes of values, with Placing::kPool.
inline constexpr uint32_t kStagingRegion = 3;    // This client's staging buffer, in place of the pool.
// The registered memory that the client offers to the server: its reply slots, for Writes.
inline constexpr uint32_t kReplyRegion = 0;

// How a client makes its one-sided writes persistent (docs/protocol.md, "Flush methods"). Each connection has its own
// method.
enum class FlushMethod : uint8_t {
  kNone = 0,            // The medium keeps a placed value without a flush as well as with one.
  kReadAfterWrite = 1,  // The client sends a Read after the Write, on the same channel.
  kServerFlush = 2,     // The client sends a commit after the Write. The shard flushes and answers.
};

constexpr const char* FlushMethodName(FlushMethod method) {
  switch (method) {
    case FlushMethod::kNone:
      return "none";
    case FlushMethod::kReadAfterWrite:
      return "read-after-write";
    case FlushMethod::kServerFlush:
      return "server-flush";
  }
  return "unknown";
}

// How a client places values that do not fit into a request.
enum class Placing : uint8_t {
  kNone = 0,     // It cannot place them.
  kPool = 1,     // It writes them anywhere into the pool, through kPoolWriteRegion.
  kStaging = 2,  // It writes them into kStagingRegion, which has the size of a segment at least. The shard copies them.
  kWindow = 3,   // It writes them into its chunks in kPoolRegion, through windows. Without a chunk: as with kStaging.
};

constexpr const char* PlacingName(Placing placing) {
  switch (placing) {
    case Placing::kNone:
      return "none";
    case Placing::kPool:
      return "pool";
    case Placing::kStaging:
      return "staging";
    case Placing::kWindow:
      return "window";
  }
  return "unknown";
}

using Proof = std::array<uint8_t, 16>;
using Nonce = std::array<uint8_t, 32>;

// Every fabric can carry this with a request to connect (fabric::kConnectDataMax).
struct HelloRequest {
  uint32_t magic;
  uint16_t protocol_version;
  uint16_t shard;  // The shard to which this channel leads.
  uint32_t slots;  // The request slots that the client wants.
  uint32_t reserved;
  uint64_t client_id;  // A random number, the same on all channels of one client.
  uint64_t challenge;  // The number of the HelloChallenge that this answers, or 0.
  Proof proof;         // Proves that the client knows the token. Covers the nonce and the fields above.
};
ERDA_FORMAT_SIZE(HelloRequest, 48);
ERDA_FORMAT_FIELD(HelloRequest, client_id, 16);
ERDA_FORMAT_FIELD(HelloRequest, challenge, 24);
ERDA_FORMAT_FIELD(HelloRequest, proof, 32);

struct HelloReply {
  uint32_t magic;
  uint16_t protocol_version;
  uint8_t flush_method;  // This connection's FlushMethod.
  uint8_t durability;    // The pool's Durability.
  std::array<uint8_t, 16> pool_uuid;
  uint64_t server_id;   // A random number, another one for each start of a server.
  uint32_t slots;       // The request slots that the server grants.
  uint32_t slot_bytes;  // The size of a request slot.
  uint8_t placing;      // A Placing.
  uint8_t read_only;    // 1: the client may only read, and the server does not offer kRequestRegion.
  std::array<uint8_t, 6> reserved;
  uint64_t time;  // The server's time when it accepted, in microseconds of Unix time.
  Geometry geometry;
  HashSeed hash_seed;  // The pool's.
  // If the server asked for a token: proves that the server knows it, too. Covers the nonce and the fields above.
  Proof proof;
};
ERDA_FORMAT_SIZE(HelloReply, 152);
ERDA_FORMAT_FIELD(HelloReply, pool_uuid, 8);
ERDA_FORMAT_FIELD(HelloReply, server_id, 24);
ERDA_FORMAT_FIELD(HelloReply, slots, 32);
ERDA_FORMAT_FIELD(HelloReply, placing, 40);
ERDA_FORMAT_FIELD(HelloReply, time, 48);
ERDA_FORMAT_FIELD(HelloReply, geometry, 56);
ERDA_FORMAT_FIELD(HelloReply, hash_seed, 120);
ERDA_FORMAT_FIELD(HelloReply, proof, 136);

// Every fabric can carry this back to a peer that it refuses (fabric::kRejectDataMax).
struct HelloRefusal {
  uint32_t magic;
  uint16_t protocol_version;      // The server's.
  uint8_t code;                   // A Code.
  uint8_t is_challenge;           // 0.
  std::array<char, 128> message;  // Ends with a 0 byte.
};
ERDA_FORMAT_SIZE(HelloRefusal, 136);
ERDA_FORMAT_FIELD(HelloRefusal, code, 6);
ERDA_FORMAT_FIELD(HelloRefusal, is_challenge, 7);
ERDA_FORMAT_FIELD(HelloRefusal, message, 8);

// A client that does not know a token gets this message alone.
struct HelloChallenge {
  uint32_t magic;
  uint16_t protocol_version;
  uint8_t code;          // Code::kPermissionDenied.
  uint8_t is_challenge;  // 1.
  uint64_t challenge;    // The number of the nonce, by which the server finds it. Never 0.
  Nonce nonce;           // Random bytes that no client can predict.
};
ERDA_FORMAT_SIZE(HelloChallenge, 48);
ERDA_FORMAT_FIELD(HelloChallenge, is_challenge, 7);
ERDA_FORMAT_FIELD(HelloChallenge, challenge, 8);
ERDA_FORMAT_FIELD(HelloChallenge, nonce, 16);

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
inline constexpr uint32_t kTakesBack = 1U << 31;
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
