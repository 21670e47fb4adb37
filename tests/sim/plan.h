// What a simulated run does: how many of everything, and how likely each fault is. All of it follows from a kind and a
// seed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "fabric/sim/network.h"
#include "format/messages.h"

namespace erda::sim {

// Defects that a run can be given on purpose, to see that the checker finds them.
enum class Defect : uint8_t {
  kNone,
  kStaleGet,    // now and then a get is answered from memory
  kLostPut,     // now and then a put is said to be done, and was not
  kRepeatedPut  // puts are done twice
};

enum class Kind : uint8_t {
  kMixed,
  kChurn,
  kFullIndex,
  kImpatience,
  kReports,
  kCrashes,
  kDeletes,
  kMoves,
  kCollisions,
  kDecay,
  kCleaning,
  kConditions,
  kExpiry,
  kGrowth,
  kScans,
  kForgeries
};
inline constexpr std::array kKindNames = {"mixed",   "churn",  "full-index", "impatience", "reports",  "crashes",
                                          "deletes", "moves",  "collisions", "decay",      "cleaning", "conditions",
                                          "expiry",  "growth", "scans",      "forgeries"};

[[nodiscard]] std::string_view NameOf(Kind kind);
[[nodiscard]] std::optional<Kind> KindNamed(std::string_view name);
// The kind that a seed stands for when nothing else is said.
[[nodiscard]] Kind KindOf(uint64_t seed);

struct Plan {
  Kind kind = Kind::kMixed;
  uint64_t seed = 0;
  Defect defect = Defect::kNone;

  uint32_t shards = 1;
  uint32_t ports = 1;  // fabrics that the server is reached on
  uint32_t clients = 3;
  uint32_t keys = 4;
  uint32_t queue_depth = 4;
  uint32_t operations = 200;
  uint64_t index_entries = 0;  // 0: room for all
  bool index_grows = false;    // so that where it is to be full it is
  bool collisions = false;     // most keys have one home in the index, the others are not far away
  uint64_t pool_size = 4 << 20;
  uint64_t region_size = 64 << 10;
  uint32_t regions_per_head = 30;  // so that there are often several heads
  uint64_t segment_size = 16 << 10;
  uint32_t value_bytes_max = 6000;
  bool same_sizes = false;  // all values are as large as that
  double hot_share = 0;     // of operations, that are on the first key
  double stall_chance = 0;  // of a put on that key: that its client pauses before it writes the value
  uint32_t percent_gets = 50;
  uint32_t percent_deletes = 12;  // the rest are puts
  // Puts and deletes demand a version, or absence, and gets and puts tell versions; a counter is incremented.
  bool conditions = false;
  double stranger_share =
      0;                 // of clients: they are another user's, so their large values are staged, or go through windows
  double ttl_share = 0;  // of puts, that have a time to live, of so many milliseconds at most
  uint32_t ttl_max = 3;
  uint64_t note_ahead = 3'600'000;  // of the note of the time in the pool, in milliseconds: once in a run
  double clocks_stand_still = 0;    // share of clients whose clock does while they pause, as in a virtual machine
  double forge_chance = 0;          // of a step of the loop: of one of a client that forges headers in its chunk
  double scan_share = 0;            // of operations, that are a page of a scan
  uint32_t reservations_per_client = 64;
  uint32_t requests_per_second = 0;                    // of a client, that a shard serves; 0: no limit
  std::array<format::FlushMethod, 2> flush_methods{};  // by port; of two ports, none for both or for neither
  Nanoseconds timeout{20'000'000};
  fabric::SimOptions network;

  // Of each step of the loop.
  double start_chance = 0.05;
  double next_chance = 0.3;  // that a callback starts another operation
  double server_chance = 0.2;
  double client_chance = 0.2;
  double drop_chance = 0;
  double kill_chance = 0;
  double restart_chance = 0;
  double pause_chance = 0;  // of a client, which does nothing for a while, and then goes on
  Nanoseconds pause_max{0};
  double damage_chance = 0;          // of a settled value, on the medium
  double flip_chance = 0;            // of a bit of an index entry, on the medium
  double rest_flip_chance = 0;       // the same, before a start, if the pool was closed
  double crash_chance = 0;           // of the server, at each fence
  double move_crash_chance = 0;      // and at the first fence behind a move of the cleaner's
  double split_crash_chance = 0;     // and at the last two fences of a split of the index, and the first one behind it
  double start_crash_chance = 0;     // the same while it starts
  double crash_anywhere_chance = 0;  // of the server, between any two steps
  double grow_chance = 0;            // of a pool that was closed, before the next server opens it
  double power_cut_share = 0;        // of crashes: the power goes, and what is not flushed may be lost
  double fence_race_chance = 0;      // that the others go on while the server waits in a fence
  bool check_bytes = true;           // that the bytes written to NVM are those of docs/benchmarks/results.md
  double placed_share = 0.5;         // of clients: their puts are kPlaced
  double cleaner_chance = 0.3;       // of a step of the server: that it is one of a cleaner
  double tidy_chance = 0.1;          // of one with nothing else to do: that it sweeps
  bool has_room = false;             // for all there is, so that no put may be refused

  // A plan of its own for every kind and seed.
  static Plan Of(Kind kind, uint64_t seed);
  // A bit of everything, on few keys.
  static Plan OfMixed(uint64_t seed);
  // Many keys that come and go on a network that tears everything: index slots pass from key to key under the readers.
  static Plan OfChurn(uint64_t seed);
  // An index that is almost full: entries move under the readers.
  static Plan OfFullIndex(uint64_t seed);
  // Clients that give up sooner than the network delivers, and begin something else at once.
  static Plan OfImpatience(uint64_t seed);
  // Values so long under way that readers find them missing all the time, and tell the server.
  static Plan OfReports(uint64_t seed);
  // A server whose process dies in the middle of its work, or whose power goes.
  static Plan OfCrashes(uint64_t seed);
  // Keys that come and go at once, while the power goes.
  static Plan OfDeletes(uint64_t seed);
  // Crashes while index entries move.
  static Plan OfMoves(uint64_t seed);
  // Keys that collide in the index, more of them than it can take: moves go far.
  static Plan OfCollisions(uint64_t seed);
  // Settled values and index entries are damaged on the medium, among all the rest.
  static Plan OfDecay(uint64_t seed);
  // A log that is overwritten many times, with all kinds of crashes.
  static Plan OfCleaning(uint64_t seed);
  // Clients that put and delete only what they know, and count together; with any of the faults above.
  static Plan OfConditions(uint64_t seed);
  // Values that expire, with any of the faults above, while entries are freed behind them.
  static Plan OfExpiry(uint64_t seed);
  // An index that grows from its smallest size on, with any of the faults above.
  static Plan OfGrowth(uint64_t seed);
  // Scans among everything else: one of the plans above.
  static Plan OfScans(uint64_t seed);
  // A client that writes headers into its chunk, among crashes or while the log is cleaned.
  static Plan OfForgeries(uint64_t seed);
  [[nodiscard]] std::string ToText() const;
};

}  // namespace erda::sim
