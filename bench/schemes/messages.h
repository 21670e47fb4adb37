// The messages of client and server of a scheme, similar to Erda's (src/format/messages.h). A request goes by WriteImm
// into one of the client's slots at the server, with the slot's number. The answer goes into the same slot at the
// client. The paper sends messages. A WriteImm is just as two-sided, since it takes a receive and the server's CPU. But
// it carries more than the 256 bytes of this contract's Send.
//
//   Request   0    1     4       8     12    16        24        32
//             +----+-----+-------+-----+-----+---------+---------+-----+-------+
//             | op | 0   | sizes | crc | 0   | position| 0       | key | value |
//             +----+-----+-------+-----+-----+---------+---------+-----+-------+
//   Reply     0      1     4            8          16
//             +------+-----+------------+----------+-------+
//             | code | 0   | value size | position | value |
//             +------+-----+------------+----------+-------+
#pragma once

#include <array>
#include <cstdint>

#include "bench/schemes/entry.h"
#include "format/check.h"

namespace erda::schemes {

inline constexpr uint32_t kMagic = 0x6d484353;  // "SCHm"
inline constexpr uint16_t kVersion = 2;
// One more than a client's operations in flight: the value of a get lies in its slot while the callback starts the next
// one.
inline constexpr uint32_t kSlotsMax = 257;
// Bounds of a slot. A request with its key and value must fit into a slot of the server. An answer with its value must
// fit into a slot of the client.
inline constexpr uint32_t kSlotBytesMin = 2048;
inline constexpr uint32_t kSlotBytesMax = 65536;
// One cache line more, so that the slots do not all fall into the same set of a cache.
inline constexpr uint32_t kReplySlotBytes = kSlotBytesMax + kCacheLine;

// The numbers of the regions that each end offers.
inline constexpr uint32_t kRequestRegion = 0;  // Of the server: this client's request slots, for the client to write.
// Of the server, for Read After Write: the pool, so that the client can write into its log.
inline constexpr uint32_t kPoolRegion = 1;
inline constexpr uint32_t kReplyRegion = 0;  // Of the client: its reply slots.

struct Hello {
  uint32_t magic;
  uint16_t version;
  uint8_t scheme;  // A Scheme.
  uint8_t reserved1;
  uint32_t slots;  // Requests in flight.
  uint32_t reserved2;
};
ERDA_FORMAT_SIZE(Hello, 16);
ERDA_FORMAT_FIELD(Hello, slots, 8);

struct HelloReply {
  uint32_t magic;
  uint16_t version;
  uint8_t scheme;
  uint8_t flush_method;  // A format::FlushMethod.
  uint32_t slots;
  uint32_t slot_bytes;  // Of the request slots.
  uint32_t seed;        // Of checksums.
  uint32_t value_bytes_max;
  uint64_t log_offset;
  uint64_t log_bytes;
};
ERDA_FORMAT_SIZE(HelloReply, 40);
ERDA_FORMAT_FIELD(HelloReply, seed, 16);
ERDA_FORMAT_FIELD(HelloReply, log_offset, 24);

struct Refusal {
  uint32_t magic;
  uint8_t code;  // A Code.
  std::array<uint8_t, 3> reserved;
  std::array<char, 128> message;  // Ends with a 0 byte.
};
ERDA_FORMAT_SIZE(Refusal, 136);
ERDA_FORMAT_FIELD(Refusal, message, 8);

enum class RequestOp : uint8_t {
  kGet = 1,       // Needs the key.
  kPut = 2,       // Redo Logging: needs key, value, and the crc of both.
  kReserve = 3,   // Read After Write: needs the key and sizes. Answers with a position in the log.
  kCommit = 4,    // Read After Write, if a Read flushes nothing: needs the position of the written entry.
  kDelete = 5,    // Needs the key.
  kCounters = 6,  // Answers with Counters, after all possible entries were applied.
};

struct Request {
  uint8_t op;
  std::array<uint8_t, 3> reserved0;
  uint32_t sizes;  // A PairSizes.
  uint32_t crc;    // Of kPut: PairCrc.
  uint32_t reserved1;
  uint64_t position;  // Of kCommit.
  uint64_t reserved2;
};
ERDA_FORMAT_SIZE(Request, 32);
ERDA_FORMAT_FIELD(Request, sizes, 4);
ERDA_FORMAT_FIELD(Request, position, 16);

struct Reply {
  uint8_t code;  // A Code.
  std::array<uint8_t, 3> reserved;
  uint32_t value_size;  // Of kGet and kCounters: bytes after this Reply.
  uint64_t position;    // Of kReserve.
};
ERDA_FORMAT_SIZE(Reply, 16);
ERDA_FORMAT_FIELD(Reply, position, 8);

// Counts since the server's start.
struct Counters {
  uint64_t nvm_bytes;  // Stored by the server.
  uint64_t puts;
  uint64_t applied;
  uint64_t unapplied;  // At present.
  uint64_t keys;       // At present.
  uint64_t waits;      // Requests that waited for room in the log, or for another request that did.
};
ERDA_FORMAT_SIZE(Counters, 48);

}  // namespace erda::schemes
