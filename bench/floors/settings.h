// Settings of `erda-bench floors`, and numbers that follow from them.
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
// The number of different objects that gets and raw operations use in turn. kIndexSlots are the index slots of a new
// pool for them.
inline constexpr uint64_t kPlacesMax = 64;  // A block has at most this many operations, too.
inline constexpr uint64_t kIndexSlots = 16 * kPlacesMax;
// Operations in flight where the rate counts.
inline constexpr uint32_t kDeep = 32;
// The size of delegated puts. There are kLargePlaces places of that size for raw Writes.
inline constexpr uint64_t kLargeBytes = 16384;
inline constexpr uint64_t kLargePlaces = 16;
// The size of the small raw Read.
inline constexpr uint64_t kSmallReadBytes = 64;

struct Settings {
  std::string fabric = "shm";
  std::string address;      // Of the engine's server. Empty with shm: a socket in a temporary folder.
  std::string raw_address;  // Of the raw responder. Empty: it follows from `address`.
  std::string pool = "dram:";
  uint64_t pool_size = 0;  // 0: enough.
  uint64_t value_bytes = 64;
  uint64_t ops = 10'000;  // Operations of each kind.
  uint64_t rounds = 20;
  // The run ends after this time, but not before kRoundsMin rounds. 0: it ends when all rounds are done.
  uint64_t seconds = 60;
  uint64_t block_ops = 0;  // Operations between two looks at the clock. 0: by the clock's cost.
  double limit = 0;        // A ratio above this is a failure. 0: no limit.
  std::string json_path;
  std::string device;  // For ib_read_lat. Empty: the device that has the address.
  int gid_index = -1;  // For ib_read_lat. -1: the index of that address.
};

// Adds the options of a benchmark's server: --fabric and --address.
void AddOwnServer(CLI::App& app, std::string& fabric, std::string& address);
// Adds the subcommand `erda-bench floors`.
CLI::App* AddFloors(CLI::App& app, Settings& settings);
// Checks that the address of an option, if there is one, belongs to this fabric. Returns an empty string if it does.
[[nodiscard]] std::string CheckAddress(const std::string& option, const std::string& fabric,
                                       const std::string& address);
// Checks what the parser cannot check. Returns an empty string if all is well.
[[nodiscard]] std::string CheckSettings(const Settings& settings);

// "shm:/path" -> "shm:/path.raw", "verbs://host:port?device=rxe0" -> "verbs://host:port+1?device=rxe0". Port 0, any
// free port, stays. Returns an empty string if there is no such address.
[[nodiscard]] std::string RawAddressOf(std::string_view address);
// Returns "10.9.0.1" of "verbs://10.9.0.1:7700", and "fd09::1" of "verbs://[fd09::1]:7700". Returns an empty string if
// it is no verbs address.
[[nodiscard]] std::string HostOf(std::string_view address);

// Returns the number of operations for each look at the clock, so that looking takes at most one part in 100 of the
// time.
[[nodiscard]] uint64_t BlockFor(double clock_ns, double fastest_op_ns);

// The division of the operations of one kind.
struct Plan {
  uint64_t block_ops = 1;
  uint64_t warm_blocks = 1;  // In each round, not measured.
  uint64_t blocks = 1;       // In each round.
  uint64_t rounds = 1;
  [[nodiscard]] uint64_t ops() const { return rounds * blocks * block_ops; }
};
[[nodiscard]] Plan PlanFor(const Settings& settings, uint64_t block_ops);

// The bytes of an object, and of the request that carries its value.
[[nodiscard]] constexpr uint64_t ObjectBytes(uint64_t value_bytes) {
  return format::ObjectBytes(kKeyBytes, value_bytes);
}
[[nodiscard]] constexpr uint64_t RequestBytes(uint64_t value_bytes) {
  return format::InlineValueOffset(kKeyBytes) + value_bytes;
}
// Returns the bytes that a get reads of an object: whole granules, like the size in the index.
[[nodiscard]] constexpr uint64_t ObjectReadBytes(uint64_t value_bytes) {
  return format::ObjectSpace(kKeyBytes, value_bytes);
}
// Returns the distance from one raw place to the next.
[[nodiscard]] constexpr uint64_t StrideFor(uint64_t value_bytes) {
  return AlignUp(format::ObjectSpace(kKeyBytes, value_bytes), kCacheLine);
}
// The memory of raw operations. First come words that name objects, each in a separate cache line like Erda's entries.
// Then come places for the value, and for large values.
inline constexpr uint64_t kRawEntriesBytes = kPlacesMax * kCacheLine;
[[nodiscard]] constexpr uint64_t RawBytesFor(uint64_t value_bytes) {
  return kRawEntriesBytes + kPlacesMax * StrideFor(value_bytes) + kLargePlaces * StrideFor(kLargeBytes);
}
// Returns the size of a pool that takes all puts of a run with any block size.
[[nodiscard]] uint64_t PoolBytesFor(const Settings& settings);

}  // namespace erda::floors
