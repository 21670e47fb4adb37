// What client and server of a scheme say to each other, in Erda's manner (src/format/messages.h): a request goes into
// one of the client's slots at the server by WriteImm with the slot's number, the answer into the same slot at the
// client. The paper sends them; a WriteImm is as two-sided, since it takes a receive and the server's CPU, and it
// carries more than the 256 bytes of this contract's Send.
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
// One more than a client's operations in flight: the value of a get lies in its slot while the callback starts the
// next.
inline constexpr uint32_t kSlotsMax = 257;
// A request with its key and value fits into a slot of the server, an answer with its value into one of the client.
inline constexpr uint32_t kSlotBytesMin = 2048;
inline constexpr uint32_t kSlotBytesMax = 65536;
// (A line more, so that the slots do not all fall into the same set of a cache.)
inline constexpr uint32_t kReplySlotBytes = kSlotBytesMax + kCacheLine;

// The regions that each end offers, by their number.
inline constexpr uint32_t kRequestRegion = 0;  // of the server: this client's request slots, to write
inline constexpr uint32_t kPoolRegion = 1;     // of the server, for Read After Write: the pool, to write into its log
inline constexpr uint32_t kReplyRegion = 0;    // of the client: its reply slots

struct Hello {
  uint32_t magic;
  uint16_t version;
  uint8_t scheme;  // a Scheme
  uint8_t reserved1;
  uint32_t slots;  // requests in flight
  uint32_t reserved2;
};
ERDA_FORMAT_SIZE(Hello, 16);
ERDA_FORMAT_FIELD(Hello, slots, 8);

struct HelloReply {
  uint32_t magic;
  uint16_t version;
  uint8_t scheme;
  uint8_t flush_method;  // a format::FlushMethod
  uint32_t slots;
  uint32_t slot_bytes;  // of the request slots
  uint32_t seed;        // of checksums
  uint32_t value_bytes_max;
  uint64_t log_offset;
  uint64_t log_bytes;
};
ERDA_FORMAT_SIZE(HelloReply, 40);
ERDA_FORMAT_FIELD(HelloReply, seed, 16);
ERDA_FORMAT_FIELD(HelloReply, log_offset, 24);

struct Refusal {
  uint32_t magic;
  uint8_t code;  // a Code
  std::array<uint8_t, 3> reserved;
  std::array<char, 128> message;  // ends with a 0 byte
};
ERDA_FORMAT_SIZE(Refusal, 136);
ERDA_FORMAT_FIELD(Refusal, message, 8);

enum class RequestOp : uint8_t {
  kGet = 1,       // key
  kPut = 2,       // Redo Logging: key, value, crc of both
  kReserve = 3,   // Read After Write: key; sizes: answers a position in the log
  kCommit = 4,    // Read After Write where a Read flushes nothing: position, whose entry was written
  kDelete = 5,    // key
  kCounters = 6,  // answers Counters, after all that can be applied was
};

struct Request {
  uint8_t op;
  std::array<uint8_t, 3> reserved0;
  uint32_t sizes;  // a PairSizes
  uint32_t crc;    // kPut: PairCrc
  uint32_t reserved1;
  uint64_t position;  // kCommit
  uint64_t reserved2;
};
ERDA_FORMAT_SIZE(Request, 32);
ERDA_FORMAT_FIELD(Request, sizes, 4);
ERDA_FORMAT_FIELD(Request, position, 16);

struct Reply {
  uint8_t code;  // a Code
  std::array<uint8_t, 3> reserved;
  uint32_t value_size;  // kGet, kCounters: of the bytes behind this
  uint64_t position;    // kReserve
};
ERDA_FORMAT_SIZE(Reply, 16);
ERDA_FORMAT_FIELD(Reply, position, 8);

// Since the server's start.
struct Counters {
  uint64_t nvm_bytes;  // stored by the server
  uint64_t puts;
  uint64_t applied;
  uint64_t unapplied;  // now
  uint64_t keys;       // now
  uint64_t waits;      // requests that waited for room in the log, or behind one that did
};
ERDA_FORMAT_SIZE(Counters, 48);

}  // namespace erda::schemes
