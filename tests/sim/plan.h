// The plan of a simulated run: how much of everything the run has, and how likely each fault is. Kind and seed decide
// all of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "fabric/sim/network.h"
#include "format/hello.h"

namespace erda::sim {

// Defects that a run can get on purpose, to show that the checker finds them.
enum class Defect : uint8_t {
  kNone,
  kStaleGet,    // some gets are answered from memory
  kLostPut,     // some puts are reported as done, and never happen
  kRepeatedPut  // each put happens twice
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
  kForgeries,
  kJournal,
  kMirror
};
inline constexpr std::array kKindNames = {"mixed",   "churn",  "full-index", "impatience", "reports",  "crashes",
                                          "deletes", "moves",  "collisions", "decay",      "cleaning", "conditions",
                                          "expiry",  "growth", "scans",      "forgeries",  "journal",  "mirror"};

[[nodiscard]] std::string_view NameOf(Kind kind);
[[nodiscard]] std::optional<Kind> KindNamed(std::string_view name);
// Returns the kind of a seed whose kind is not given.
[[nodiscard]] Kind KindOf(uint64_t seed);

struct Plan {
  Kind kind = Kind::kMixed;
  uint64_t seed = 0;
  Defect defect = Defect::kNone;

  uint32_t shards = 1;
  uint32_t ports = 1;  // The fabrics on which clients reach the server.
  uint32_t clients = 3;
  uint32_t keys = 4;
  uint32_t queue_depth = 4;
  uint32_t operations = 200;
  uint64_t index_entries = 0;  // 0: room for all keys.
  bool index_grows = false;    // If false, a full index stays full.
  bool collisions = false;     // Most keys have the same home in the index, and the others have homes near it.
  uint64_t pool_size = 4 << 20;
  uint64_t region_size = 64 << 10;
  uint32_t regions_per_head = 30;  // Small enough for several heads in many plans.
  uint64_t segment_size = 16 << 10;
  uint32_t value_bytes_max = 6000;
  bool same_sizes = false;  // All values have value_bytes_max bytes.
  double hot_share = 0;     // The share of operations that are on the first key.
  double stall_chance = 0;  // The chance that a client pauses before it writes the value of a put on the first key.
  uint32_t percent_gets = 50;
  uint32_t percent_deletes = 12;  // All other operations are puts.
  // Puts and deletes have a version or absence as their condition. Gets and puts tell versions. Clients increment a
  // counter.
  bool conditions = false;
  // The share of clients that belong to another user. They stage large values, or write them through windows.
  double stranger_share = 0;
  double ttl_share = 0;  // The share of puts with a time to live, of at most ttl_max milliseconds.
  uint32_t ttl_max = 3;
  // How far the note of the time in the pool is ahead, in milliseconds. The default gives one note in a run.
  uint64_t note_ahead = 3'600'000;
  double clocks_stand_still = 0;  // The share of clients whose clock stops during a pause, as in a virtual machine.
  double forge_chance = 0;        // The chance of a step of the forger in each step of the loop.
  double scan_share = 0;          // The share of operations that are a page of a scan.
  uint32_t reservations_per_client = 64;
  uint32_t requests_per_second = 0;                    // The most that a shard serves of one client. 0: no limit.
  std::array<format::FlushMethod, 2> flush_methods{};  // By port. kNone is for both ports or for neither.
  Nanoseconds timeout{20'000'000};
  fabric::SimOptions network;

  // Chances, most of them of each step of the loop.
  double start_chance = 0.05;
  double next_chance = 0.3;  // A callback starts another operation.
  double server_chance = 0.2;
  double client_chance = 0.2;
  double drop_chance = 0;
  double kill_chance = 0;
  double restart_chance = 0;
  double pause_chance = 0;  // A client does nothing for some time.
  Nanoseconds pause_max{0};
  double damage_chance = 0;          // A settled value is damaged on the medium.
  double flip_chance = 0;            // A bit of an index entry flips on the medium.
  double rest_flip_chance = 0;       // A bit of an index entry flips between a clean close and the next start.
  double crash_chance = 0;           // The server crashes, at each fence.
  double move_crash_chance = 0;      // Added to crash_chance at the first fence after a move by the cleaner.
  double split_crash_chance = 0;     // Added at the last two fences of a split and the first one after it.
  double start_crash_chance = 0;     // The server crashes while it starts, at each fence.
  double crash_anywhere_chance = 0;  // The server crashes between any two steps.
  double grow_chance = 0;            // The pool grows between a clean close and the next open.
  double power_cut_share = 0;    // The share of crashes with a power cut, which may lose bytes that are not flushed.
  bool journal = false;          // The pool has a journal: the medium gets all flushes later, in their order.
  bool mirror = false;           // With `journal`: that medium is a mirror, which is promoted after a power cut.
  double hold_chance = 0.3;      // The medium of such a pool gets some more, in a step of the server.
  double fence_race_chance = 0;  // The clients go on while the server waits in a fence.
  bool check_bytes = true;       // Checks the bytes written to NVM against docs/benchmarks/results.md.
  double placed_share = 0.5;     // The share of clients whose puts are kPlaced.
  double cleaner_chance = 0.3;   // A step of the server is a step of a cleaner.
  double tidy_chance = 0.1;      // The server sweeps in a step without other work.
  bool has_room = false;         // True if the log has room for all values, so that the server must refuse no put.

  // Returns the plan of a kind and seed.
  static Plan Of(Kind kind, uint64_t seed);
  // Some of every fault, on few keys.
  static Plan OfMixed(uint64_t seed);
  // Many keys that come and go, on a network that tears everything. Index slots change their keys while clients read.
  static Plan OfChurn(uint64_t seed);
  // An index that is almost full. Entries move while clients read.
  static Plan OfFullIndex(uint64_t seed);
  // Clients with timeouts shorter than the delays of the network. They start the next operation at once.
  static Plan OfImpatience(uint64_t seed);
  // Values that arrive late. Readers find them missing several times, and report that to the server.
  static Plan OfReports(uint64_t seed);
  // A server whose process dies in the middle of its work, or whose power is cut.
  static Plan OfCrashes(uint64_t seed);
  // Keys that come and go at once, with power cuts.
  static Plan OfDeletes(uint64_t seed);
  // Crashes while index entries move.
  static Plan OfMoves(uint64_t seed);
  // More colliding keys than the index can take, so that moves go far.
  static Plan OfCollisions(uint64_t seed);
  // Settled values and index entries are damaged on the medium, with other faults.
  static Plan OfDecay(uint64_t seed);
  // A log that is overwritten many times, with all kinds of crashes.
  static Plan OfCleaning(uint64_t seed);
  // Clients that put and delete on a condition, and increment one counter, with any of the faults above.
  static Plan OfConditions(uint64_t seed);
  // Values that expire, with any of the faults above, while the shard frees their entries.
  static Plan OfExpiry(uint64_t seed);
  // An index that grows from its smallest size, with any of the faults above.
  static Plan OfGrowth(uint64_t seed);
  // One of the plans above, with scans.
  static Plan OfScans(uint64_t seed);
  // A client that writes headers into its chunk, with crashes or while the cleaner works.
  static Plan OfForgeries(uint64_t seed);
  // One of the plans above, on a pool with a journal.
  static Plan OfJournal(uint64_t seed);
  // The same on a mirrored pool.
  static Plan OfMirror(uint64_t seed);
  [[nodiscard]] std::string ToText() const;
};

}  // namespace erda::sim
