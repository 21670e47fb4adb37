// The messages by which a client connects, and what client and server agree on by them. Little-endian, in place, no
// padding.
//
// The client's private data is a HelloRequest. The server's is a HelloReply if it accepts, and a HelloRefusal if not. A
// server that demands a token refuses the first HelloRequest with a HelloChallenge. The client connects once more, with
// the proof that it knows the token. The HelloReply proves that the server knows it (format/proof.h).
#pragma once

#include <array>
#include <cstdint>

#include "base/hash.h"
#include "format/check.h"
#include "format/geometry.h"

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

// The kind of the peer that connects (docs/mirror.md has mirrors).
enum class Role : uint32_t { kClient = 0, kMirror = 1 };

using Proof = std::array<uint8_t, 16>;
using Nonce = std::array<uint8_t, 32>;

// Every fabric can carry this with a request to connect (fabric::kConnectDataMax).
struct HelloRequest {
  uint32_t magic;
  uint16_t protocol_version;
  uint16_t shard;  // The shard to which this channel leads.
  uint32_t slots;  // The request slots that the client wants.
  Role role;
  uint64_t client_id;  // A random number, the same on all channels of one client.
  uint64_t challenge;  // The number of the HelloChallenge that this answers, or 0.
  Proof proof;         // Proves that the client knows the token. Covers the nonce and the fields above.
};
ERDA_FORMAT_SIZE(HelloRequest, 48);
ERDA_FORMAT_FIELD(HelloRequest, role, 12);
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

}  // namespace erda::format
