// What `erda-bench floors` was asked to measure, and what follows from that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "format/messages.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace erda::floors {

inline constexpr uint32_t kKeyBytes = 24;
// Different objects that gets and raw operations go through in turn, and the slots of a new pool's index for them.
inline constexpr uint64_t kPlacesMax = 64;  // and as many operations in a block
inline constexpr uint64_t kIndexSlots = 16 * kPlacesMax;
// Operations in flight where the rate counts.
inline constexpr uint32_t kDeep = 32;
// What delegated puts are measured with, and the places of raw Writes as large.
inline constexpr uint64_t kLargeBytes = 16384;
inline constexpr uint64_t kLargePlaces = 16;
// The size of the small raw Read.
inline constexpr uint64_t kSmallReadBytes = 64;

struct Settings {
  std::string fabric = "shm";
  std::string address;      // of the engine's server; empty with shm: a socket in a folder of its own
  std::string raw_address;  // of the raw responder; empty: what follows from `address`
  std::string pool = "dram:";
  uint64_t pool_size = 0;  // 0: enough
  uint64_t value_bytes = 64;
  uint64_t ops = 10'000;  // of each kind
  uint64_t rounds = 20;
  uint64_t seconds = 60;   // then it ends, behind kRoundsMin rounds; 0: only when all rounds are done
  uint64_t block_ops = 0;  // operations between two looks at the clock; 0: by the clock's cost
  double limit = 0;        // ratios above it are a failure; 0: none
  std::string json_path;
  std::string device;  // for ib_read_lat; empty: the one that has the address
  int gid_index = -1;  // likewise
};

// Where a benchmark's own server listens: --fabric and --address.
void AddOwnServer(CLI::App& app, std::string& fabric, std::string& address);
// `erda-bench floors`
CLI::App* AddFloors(CLI::App& app, Settings& settings);
// Empty if the address that the option gave, if any, is one of this fabric.
[[nodiscard]] std::string CheckAddress(const std::string& option, const std::string& fabric,
                                       const std::string& address);
// What the parser cannot see. Empty if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

// "shm:/path" -> "shm:/path.raw", "verbs://host:port?device=rxe0" -> "verbs://host:port+1?device=rxe0". Port 0, any
// that is free, stays. Empty if there is no such address.
[[nodiscard]] std::string RawAddressOf(std::string_view address);
// "10.9.0.1" in "verbs://10.9.0.1:7700", "fd09::1" in "verbs://[fd09::1]:7700"; empty if it is no verbs address.
[[nodiscard]] std::string HostOf(std::string_view address);

// The clock is read once in so many operations, so that reading it is at most one part in 100 of what is measured.
[[nodiscard]] uint64_t BlockFor(double clock_ns, double fastest_op_ns);

// How the operations of one kind are cut.
struct Plan {
  uint64_t block_ops = 1;
  uint64_t warm_blocks = 1;  // of each round, not measured
  uint64_t blocks = 1;       // of each round
  uint64_t rounds = 1;
  [[nodiscard]] uint64_t ops() const { return rounds * blocks * block_ops; }
};
[[nodiscard]] Plan PlanFor(const Settings& settings, uint64_t block_ops);

// The bytes of an object, and of the request that brings its value along.
[[nodiscard]] constexpr uint64_t ObjectBytes(uint64_t value_bytes) {
  return format::ObjectBytes(kKeyBytes, value_bytes);
}
[[nodiscard]] constexpr uint64_t RequestBytes(uint64_t value_bytes) {
  return format::InlineValueOffset(kKeyBytes) + value_bytes;
}
// What a get reads of an object: whole granules, as the index says its size.
[[nodiscard]] constexpr uint64_t ObjectReadBytes(uint64_t value_bytes) {
  return format::ObjectSpace(kKeyBytes, value_bytes);
}
// From one raw place to the next.
[[nodiscard]] constexpr uint64_t StrideFor(uint64_t value_bytes) {
  return AlignUp(format::ObjectSpace(kKeyBytes, value_bytes), kCacheLine);
}
// What raw operations use: words that name objects, each in a cache line of its own as Erda's entries are; behind them
// places for the value, and for large ones.
inline constexpr uint64_t kRawEntriesBytes = kPlacesMax * kCacheLine;
[[nodiscard]] constexpr uint64_t RawBytesFor(uint64_t value_bytes) {
  return kRawEntriesBytes + kPlacesMax * StrideFor(value_bytes) + kLargePlaces * StrideFor(kLargeBytes);
}
// A pool that takes all puts of a run, whatever the block turns out to be.
[[nodiscard]] uint64_t PoolBytesFor(const Settings& settings);

}  // namespace erda::floors
