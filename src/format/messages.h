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

// The regions that each end offers, by their number.
inline constexpr uint32_t kPoolRegion = 0;       // of the server: the pool, to read
inline constexpr uint32_t kControlRegion = 1;    // of the server: the shard's control block, to read
inline constexpr uint32_t kRequestRegion = 2;    // of the server: this client's request slots, to write
inline constexpr uint32_t kPoolWriteRegion = 3;  // of the server, if granted: the pool, to write values
inline constexpr uint32_t kStagingRegion = 3;    // of the server, in its stead: this client's staging buffer
inline constexpr uint32_t kReplyRegion = 0;      // of the client: its reply slots, for the server to write

// How a client makes its one-sided writes persistent (docs/protocol.md, "Flush methods"). Each connection has its own
// method.
enum class FlushMethod : uint8_t {
  kNone = 0,            // the medium keeps what was placed as well as it ever will
  kReadAfterWrite = 1,  // a Read after the Write on the same channel
  kServerFlush = 2,     // a commit request after the Write; the shard flushes and answers
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
  kNone = 0,     // not at all
  kPool = 1,     // anywhere in the pool: kPoolWriteRegion
  kStaging = 2,  // in a staging buffer, from where the shard copies them: kStagingRegion, of a segment at least
  kWindow = 3,   // in its chunks, through a window for each, in kPoolRegion; values without a chunk as with kStaging
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

// As long as every fabric can carry with a request to connect (fabric::kConnectDataMax).
struct HelloRequest {
  uint32_t magic;
  uint16_t protocol_version;
  uint16_t shard;  // the shard this channel is for
  uint32_t slots;  // requests the client wants to have in flight
  uint32_t reserved;
  uint64_t client_id;  // random; the same on all channels of one client
  uint64_t challenge;  // the HelloChallenge's, if this answers one, or 0
  Proof proof;         // that the client knows the token; covers the nonce and the fields above
};
ERDA_FORMAT_SIZE(HelloRequest, 48);
ERDA_FORMAT_FIELD(HelloRequest, client_id, 16);
ERDA_FORMAT_FIELD(HelloRequest, challenge, 24);
ERDA_FORMAT_FIELD(HelloRequest, proof, 32);

struct HelloReply {
  uint32_t magic;
  uint16_t protocol_version;
  uint8_t flush_method;  // a FlushMethod: this connection's
  uint8_t durability;    // a Durability
  std::array<uint8_t, 16> pool_uuid;
  uint64_t server_id;   // random for each start of a server
  uint32_t slots;       // granted
  uint32_t slot_bytes;  // of the request slots
  uint8_t placing;      // a Placing
  uint8_t read_only;    // 1: the client may only read, and kRequestRegion is not offered
  std::array<uint8_t, 6> reserved;
  uint64_t time;  // the server's, in microseconds of Unix time, when it accepted
  Geometry geometry;
  HashSeed hash_seed;  // the pool's
  Proof proof;  // that the server knows the client's token, if it asked for it; covers the nonce and the fields above
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

// As long as every fabric can carry back to a peer that it refuses (fabric::kRejectDataMax).
struct HelloRefusal {
  uint32_t magic;
  uint16_t protocol_version;      // the server's
  uint8_t code;                   // a Code
  uint8_t is_challenge;           // 0
  std::array<char, 128> message;  // ends with a 0 byte
};
ERDA_FORMAT_SIZE(HelloRefusal, 136);
ERDA_FORMAT_FIELD(HelloRefusal, code, 6);
ERDA_FORMAT_FIELD(HelloRefusal, is_challenge, 7);
ERDA_FORMAT_FIELD(HelloRefusal, message, 8);

// All that a client without a token gets to see.
struct HelloChallenge {
  uint32_t magic;
  uint16_t protocol_version;
  uint8_t code;          // Code::kPermissionDenied
  uint8_t is_challenge;  // 1
  uint64_t challenge;    // never 0; the server knows by it which nonce it was
  Nonce nonce;           // that nobody can foretell
};
ERDA_FORMAT_SIZE(HelloChallenge, 48);
ERDA_FORMAT_FIELD(HelloChallenge, is_challenge, 7);
ERDA_FORMAT_FIELD(HelloChallenge, challenge, 8);
ERDA_FORMAT_FIELD(HelloChallenge, nonce, 16);

enum class RequestOp : uint8_t {
  kPutInline = 1,     // key, value
  kReserve = 2,       // key; value size: answers address, head and the header that the server wrote
  kCommit = 3,        // key hash, address, head, version: the value is placed, make it persistent
  kDelete = 4,        // key
  kReport = 5,        // key: a reader found its newest version not whole
  kClean = 6,         // any key of the shard: clean the log as far as that gains something
  kDelegate = 7,      // head; value size: bytes of the log, for a chunk; version: the fewest that are of use. Answers
                      // address and header
  kPutDelegated = 8,  // key; value size, address, crc: the value is placed, for an object at that address of a chunk
  kGiveBack = 9,      // address, head, version: the client has done with that chunk
  kIncrement = 10,    // key, and as inline value 8 bytes that are added to the key's. Answers the sum
  kPutStaged = 11,    // key; value size, address: the value is in the staging buffer, from that byte on
};

// The demand of a put inline or staged, a reserve or a delete. If the key does not meet it, the request changes
// nothing, and the answer is kConflict.
enum class Condition : uint8_t {
  kNone = 0,
  kVersion = 1,  // the key has the request's version; version 0: the key is absent
};

// An immediate with this bit is no slot's number but the address of a chunk.
inline constexpr uint32_t kTakesBack = 1U << 31;
// One with this bit is a slot's number, and the message has no bytes: it asks for the server's time.
inline constexpr uint32_t kAsksTime = 1U << 30;
// Chunks that a client may have, those that it was asked to give back included; and the bytes of one.
inline constexpr uint32_t kChunksPerClient = 16;
constexpr uint64_t ChunkBytesMax(const Geometry& geometry) {
  return std::min<uint64_t>(1 << 20, geometry.segment_size / 4);
}

struct Request {
  uint8_t op;
  uint8_t ack;  // an Ack
  uint16_t key_size;
  uint32_t value_size;
  uint64_t id;         // comes back in the reply
  uint64_t key_hash;   // kCommit
  uint32_t address;    // kCommit, kPutDelegated, kGiveBack; kPutStaged
  uint32_t head;       // kCommit, kDelegate, kGiveBack
  uint64_t version;    // kCommit, kDelegate, kGiveBack, and of a condition
  uint32_t value_crc;  // kPutDelegated: CRC32C of the value
  uint8_t condition;   // a Condition
  std::array<uint8_t, 3> reserved;
  uint64_t ttl;  // of a put: the value expires this number of milliseconds later; 0: never
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

// Where an inline value begins in its request.
constexpr uint64_t InlineValueOffset(uint64_t key_size) { return sizeof(Request) + key_size + kChecksumBytes; }

// The cause of a code, where the code alone does not tell it.
enum class Reason : uint8_t {
  kNone = 0,
  kIndexFull = 1,
  kLogFull = 2,
  kTooManyReservations = 3,  // number: how many this client may have
  kNotWhole = 4,             // a commit of a value that is not there
  kReadOnly = 5,             // the client was not given the right to write into the pool
  kDamaged = 6,
  kNoChunk = 7,     // no chunk is to be had, or it was taken back: the put may go another way
  kNotANumber = 8,  // an increment of a value that is not 8 bytes
  kOverflow = 9,    // an increment beyond 64 bits
};

struct Reply {
  uint64_t id;
  uint8_t code;    // a Code
  uint8_t reason;  // a Reason
  uint16_t reserved0;
  uint32_t address;
  uint32_t head;
  uint32_t generation;  // of the region of `address`, which is where a put is
  uint64_t number;  // as the reason says; of kIncrement the sum, of kAsksTime microseconds of Unix time, of kDelegate
                    // with Placing::kWindow the window's key
  ObjectHeader header;  // of a put the new version's; of a conflict, `version` is the present one, 0: none
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
