#include "sim/plan.h"

#include <algorithm>

#include "base/random.h"
#include "format/geometry.h"

namespace erda::sim {

std::string_view NameOf(Kind kind) { return kKindNames.at(static_cast<size_t>(kind)); }

std::optional<Kind> KindNamed(std::string_view name) {
  const auto* const found = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (found == kKindNames.end()) return std::nullopt;
  return static_cast<Kind>(found - kKindNames.begin());
}

Kind KindOf(uint64_t seed) {
  if (Random(seed ^ 0xc1ea).Uniform(100) < 15) return Kind::kCleaning;
  if (Random(seed ^ 0xc0d).Uniform(100) < 12) return Kind::kConditions;
  if (Random(seed ^ 0xe4b).Uniform(100) < 12) return Kind::kExpiry;
  if (Random(seed ^ 0x960).Uniform(100) < 6) return Kind::kGrowth;
  if (Random(seed ^ 0x5ca).Uniform(100) < 8) return Kind::kScans;
  if (Random(seed ^ 0xf04e).Uniform(100) < 5) return Kind::kForgeries;
  if (Random(seed ^ 0x3047).Uniform(100) < 12) return Kind::kJournal;
  if (Random(seed ^ 0x314202).Uniform(100) < 8) return Kind::kMirror;
  // The shares of the other kinds, in percent. Kinds with many keys take longest.
  constexpr std::array<uint32_t, kKindNames.size() - 8> kShares = {16, 2, 2, 9, 6, 25, 20, 4, 6, 10};
  uint64_t dice = Random(seed ^ 0x41d).Uniform(100);
  for (size_t kind = 0; kind < kShares.size(); ++kind) {
    if (dice < kShares[kind]) return static_cast<Kind>(kind);
    dice -= kShares[kind];
  }
  return Kind::kMixed;
}

Plan Plan::Of(Kind kind, uint64_t seed) {
  constexpr std::array kMakers = {&Plan::OfMixed,      &Plan::OfChurn,   &Plan::OfFullIndex, &Plan::OfImpatience,
                                  &Plan::OfReports,    &Plan::OfCrashes, &Plan::OfDeletes,   &Plan::OfMoves,
                                  &Plan::OfCollisions, &Plan::OfDecay,   &Plan::OfCleaning,  &Plan::OfConditions,
                                  &Plan::OfExpiry,     &Plan::OfGrowth,  &Plan::OfScans,     &Plan::OfForgeries,
                                  &Plan::OfJournal,    &Plan::OfMirror};
  static_assert(kMakers.size() == kKindNames.size());
  Plan plan = kMakers.at(static_cast<size_t>(kind))(seed);
  plan.kind = kind;
  return plan;
}

Plan Plan::OfMixed(uint64_t seed) {
  Random random(seed ^ 0x5eed);
  Plan plan;
  plan.seed = seed;
  plan.shards = static_cast<uint32_t>(random.Between(1, 2));
  plan.clients = static_cast<uint32_t>(random.Between(2, 4));
  plan.keys = static_cast<uint32_t>(random.Between(1, 5));
  plan.queue_depth = static_cast<uint32_t>(random.Between(1, 6));
  plan.operations = static_cast<uint32_t>(random.Between(100, 250));
  if (random.Chance(0.2)) {  // entries must move, and slots change their keys
    plan.shards = 1;
    plan.index_entries = format::kIndexSlotsMin;
    plan.keys = static_cast<uint32_t>(plan.index_entries) - 6;
    plan.operations = 800;
    plan.percent_deletes = 20;
    plan.region_size = 16 << 10;
    plan.segment_size = 8 << 10;
  }
  if (random.Chance(0.1)) {  // the log gets full
    plan.pool_size = (256 << 10) * plan.shards;
    plan.region_size = std::min<uint64_t>(plan.region_size, 32 << 10);
  }
  if (random.Chance(0.3)) plan.value_bytes_max = 200;
  if (random.Chance(0.1)) plan.reservations_per_client = 2;
  plan.flush_methods.fill(random.Chance(0.5) ? format::FlushMethod::kServerFlush : format::FlushMethod::kNone);
  if (random.Chance(0.3)) plan.timeout = Nanoseconds(random.Between(50'000, 500'000));

  if (random.Chance(0.3)) {  // so slow that readers report values that are not whole
    plan.network.delay_max = Nanoseconds(300'000);
    plan.timeout *= 20;
  }
  plan.network.pieces_max = static_cast<uint32_t>(random.Between(1, 12));
  plan.network.long_delay_chance = random.Chance(0.5) ? 0.01 : 0.1;
  plan.network.long_delay_max = plan.network.delay_max * (random.Chance(0.5) ? 6 : 300);
  plan.network.lose_completed = random.Chance(0.5);
  constexpr double kPace[] = {0.02, 0.1, 0.5};
  plan.start_chance = kPace[random.Uniform(3)];
  plan.server_chance = kPace[random.Uniform(3)];
  plan.client_chance = kPace[random.Uniform(3)];
  if (random.Chance(0.4)) plan.network.drop_chance = 0.003;
  if (random.Chance(0.4)) plan.drop_chance = 0.002;
  if (random.Chance(0.5)) plan.kill_chance = 0.001;
  if (random.Chance(0.3)) plan.restart_chance = 0.001;
  if (random.Chance(0.4)) plan.ports = 2;
  if (plan.flush_methods[0] == format::FlushMethod::kServerFlush) {  // two ports may have different methods
    for (auto& method : plan.flush_methods) {
      if (random.Chance(0.5)) method = format::FlushMethod::kReadAfterWrite;
    }
  }
  if (random.Chance(0.4)) {
    plan.pause_chance = 0.0005;
    plan.pause_max = plan.timeout * random.Between(1, 10);
  }
  if (random.Chance(0.5)) plan.fence_race_chance = 0.2;
  Random strangers(seed ^ 0x57a6);
  if (strangers.Chance(0.35)) plan.stranger_share = strangers.Chance(0.3) ? 1 : 0.4;
  Random growth(seed ^ 0x6706);
  if (plan.restart_chance > 0 && growth.Chance(0.5)) plan.grow_chance = 0.5;
  plan.network.memory_windows = strangers.Chance(0.5);
  plan.network.reads_in_order = Random(seed ^ 0x0d3).Chance(0.3);
  return plan;
}

Plan Plan::OfChurn(uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.clients = 4;
  plan.index_entries = format::kIndexSlotsMin;
  plan.keys = 2 * static_cast<uint32_t>(plan.index_entries);
  plan.queue_depth = 6;
  plan.operations = 2000;
  plan.value_bytes_max = 100;
  plan.percent_gets = 30;
  plan.percent_deletes = 15;
  plan.region_size = 16 << 10;
  plan.segment_size = 8 << 10;
  plan.network.pieces_max = 100;
  plan.network.delay_max = Nanoseconds(100'000);
  plan.network.long_delay_chance = 0;
  plan.start_chance = plan.server_chance = plan.client_chance = 0.5;
  return plan;
}

Plan Plan::OfFullIndex(uint64_t seed) {
  Plan plan = OfChurn(seed);
  plan.keys += 8;
  plan.percent_gets = 45;
  plan.percent_deletes = 15;
  return plan;
}

Plan Plan::OfImpatience(uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.shards = 2;
  plan.keys = 8;
  plan.operations = 500;
  plan.value_bytes_max = 1900;
  plan.flush_methods.fill(seed % 2 == 0 ? format::FlushMethod::kNone : format::FlushMethod::kServerFlush);
  plan.timeout = Nanoseconds(60'000);
  plan.network.long_delay_chance = 0.05;
  plan.network.long_delay_max = Nanoseconds(400'000);
  plan.network.lose_completed = false;
  plan.next_chance = 0.9;
  plan.start_chance = plan.server_chance = plan.client_chance = 0.5;
  return plan;
}

Plan Plan::OfReports(uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.shards = 2;
  plan.clients = 4;
  plan.keys = 6;
  plan.queue_depth = 6;
  plan.operations = 600;
  plan.percent_gets = 60;
  plan.percent_deletes = 2;
  plan.timeout = std::chrono::seconds(10);
  plan.network.delay_max = Nanoseconds(1'000'000);
  plan.network.long_delay_chance = 0;
  plan.next_chance = 0.9;
  plan.start_chance = plan.server_chance = plan.client_chance = 0.5;
  return plan;
}

Plan Plan::OfCrashes(uint64_t seed) {
  Plan plan = OfMixed(seed);
  Random random(seed ^ 0xc4a5);
  constexpr double kShares[] = {0.3, 0.6, 1.0};
  constexpr double kChances[] = {0.003, 0.01, 0.03};
  const bool power_safe = random.Chance(0.8);
  if (!power_safe) {
    plan.flush_methods.fill(format::FlushMethod::kNone);
  } else if (plan.flush_methods[0] == format::FlushMethod::kNone) {
    plan.flush_methods.fill(format::FlushMethod::kServerFlush);
  }
  if (power_safe) plan.power_cut_share = kShares[random.Uniform(std::size(kShares))];
  plan.crash_chance = kChances[random.Uniform(std::size(kChances))];
  constexpr double kStartChances[] = {0.01, 0.08, 0.25};
  plan.start_crash_chance = kStartChances[random.Uniform(std::size(kStartChances))];
  plan.crash_anywhere_chance = random.Chance(0.5) ? 0.001 : 0;
  plan.kill_chance = plan.kill_chance / 2;
  // Each crash takes time for each byte of the pool. With 4 MiB, a shard has two heads.
  if (random.Chance(0.7))
    plan.pool_size = std::min<uint64_t>(plan.pool_size, plan.operations > 250 ? 2 << 20 : 1 << 20);
  plan.fence_race_chance = std::max(plan.fence_race_chance, 0.05);
  if (random.Chance(0.5)) plan.placed_share = 0.1;
  if (random.Chance(0.3)) {
    plan.percent_gets = 30;
    plan.percent_deletes = 35;
    plan.crash_chance = 0.04;
  }
  if (power_safe && random.Chance(0.4)) {  // all clients use the same one or two keys
    plan.index_entries = 0;
    plan.keys = static_cast<uint32_t>(random.Between(1, 2));
    plan.clients = static_cast<uint32_t>(random.Between(3, 5));
    plan.operations = 200;
    plan.value_bytes_max = 600;
    plan.network.long_delay_chance = 0.01;
    plan.client_chance = 0.5;
    plan.server_chance = random.Chance(0.5) ? 0.02 : 0.1;
    plan.start_chance = 0.1;
  }
  return plan;
}

Plan Plan::OfDeletes(uint64_t seed) {
  Random random(seed ^ 0xde1e);
  Plan plan;
  plan.seed = seed;
  plan.pool_size = 512 << 10;
  plan.region_size = 32 << 10;
  plan.segment_size = 16 << 10;
  plan.clients = static_cast<uint32_t>(random.Between(4, 8));
  plan.keys = static_cast<uint32_t>(random.Between(2, 4));
  plan.queue_depth = static_cast<uint32_t>(random.Between(1, 4));
  plan.operations = 300;
  plan.value_bytes_max = 40;
  plan.percent_gets = 35;
  plan.percent_deletes = 30;
  plan.flush_methods.fill(format::FlushMethod::kServerFlush);
  plan.network.long_delay_chance = 0;
  plan.start_chance = plan.client_chance = 0.5;
  plan.server_chance = random.Chance(0.5) ? 0.05 : 0.5;
  plan.next_chance = 0.9;
  plan.crash_chance = 0.03;
  plan.start_crash_chance = 0.03;
  plan.power_cut_share = 0.8;
  plan.fence_race_chance = 0.05;
  plan.placed_share = 0.1;
  return plan;
}

Plan Plan::OfMoves(uint64_t seed) {
  Plan plan = OfFullIndex(seed);
  plan.operations = 1200;
  plan.flush_methods.fill(format::FlushMethod::kServerFlush);
  plan.crash_chance = plan.start_crash_chance = 0.01;
  plan.power_cut_share = 0.5;
  plan.fence_race_chance = 0.2;
  return plan;
}

Plan Plan::OfCollisions(uint64_t seed) {
  Plan plan = OfChurn(seed);
  plan.collisions = true;
  plan.keys = 115;
  plan.clients = 80;  // each has a separate channel: many Reads, with moves in the middle of them
  plan.queue_depth = 1;
  plan.start_chance = 1;
  plan.next_chance = 1;
  plan.operations = 1400;
  plan.percent_gets = 50;
  plan.percent_deletes = 15;
  return plan;
}

Plan Plan::OfDecay(uint64_t seed) {
  Plan plan = seed % 2 == 0 ? OfCrashes(seed) : OfMixed(seed);
  plan.damage_chance = 0.01;
  plan.flip_chance = 0.003;
  plan.rest_flip_chance = 0.5;
  plan.restart_chance = std::max(plan.restart_chance, 0.0005);
  return plan;
}

Plan Plan::OfConditions(uint64_t seed) {
  Random random(seed ^ 0xc04d);
  constexpr std::array kOthers = {Kind::kMixed,   Kind::kCrashes, Kind::kImpatience, Kind::kReports,
                                  Kind::kCrashes, Kind::kDecay,   Kind::kCleaning};
  Plan plan = Of(kOthers.at(random.Uniform(kOthers.size())), seed);
  plan.conditions = true;
  plan.keys = std::min<uint32_t>(plan.keys, 4);
  plan.percent_gets = 35;
  plan.percent_deletes = std::max<uint32_t>(plan.percent_deletes, 8);
  return plan;
}

Plan Plan::OfExpiry(uint64_t seed) {
  Random random(seed ^ 0xe4b1);
  constexpr std::array kOthers = {Kind::kMixed,   Kind::kCrashes,  Kind::kImpatience, Kind::kReports,   Kind::kDeletes,
                                  Kind::kCrashes, Kind::kCleaning, Kind::kCleaning,   Kind::kConditions};
  Plan plan = Of(kOthers.at(random.Uniform(kOthers.size())), seed);
  plan.keys = std::min<uint32_t>(plan.keys, random.Chance(0.5) ? 4 : 12);
  plan.operations = std::min<uint32_t>(plan.operations, 400);
  plan.damage_chance = 0;  // a damaged value is absent, too, after it has expired
  plan.ttl_share = random.Chance(0.5) ? 0.3 : 0.8;
  plan.ttl_max = random.Chance(0.5) ? 1 : 4;
  if (random.Chance(0.2)) {  // gets take about as long as values live, and puts come meanwhile
    plan = OfReports(seed);
    plan.shards = 1;
    plan.keys = 2;
    plan.operations = 400;
    plan.value_bytes_max = 200;
    plan.percent_gets = 70;
    plan.network.delay_max = Nanoseconds(30'000);
    plan.network.long_delay_chance = 0.05;
    plan.network.long_delay_max = Nanoseconds(4'000'000);
    plan.ttl_share = 0.5;
    plan.ttl_max = 2;
  }
  plan.note_ahead = 3;
  plan.clocks_stand_still = 0.5;
  if (random.Chance(0.5)) {
    plan.pause_chance = 0.003;
    plan.pause_max = Nanoseconds(6'000'000);
  }
  plan.check_bytes = false;
  plan.has_room = false;
  return plan;
}

namespace {

// The bytes of a pool before its log: superblocks, region table, and the smallest index.
constexpr uint64_t kTightPoolBytes = 92 << 10;

// All values have one size, and few fit into a region, so the log goes round quickly.
Plan OfTightLog(uint64_t seed, Random& random) {
  Plan plan;
  plan.seed = seed;
  plan.index_entries = format::kIndexSlotsMin;
  plan.region_size = 8 << 10;
  plan.segment_size = 4 << 10;
  plan.same_sizes = true;
  plan.operations = static_cast<uint32_t>(random.Between(300, 800));
  plan.percent_deletes = static_cast<uint32_t>(random.Between(0, 5));
  plan.flush_methods.fill(format::FlushMethod::kServerFlush);
  plan.timeout = std::chrono::seconds(1);
  plan.network.long_delay_chance = 0;
  plan.next_chance = 0.9;
  plan.start_chance = plan.client_chance = plan.server_chance = 0.5;
  plan.cleaner_chance = random.Chance(0.5) ? 0.02 : 0.5;
  return plan;
}

// Puts of one key wait long for their values, some for ever. Meanwhile the log goes round, and the cleaner moves the
// older versions.
Plan OfStalls(uint64_t seed, Random& random) {
  Plan plan = OfTightLog(seed, random);
  plan.pool_size = kTightPoolBytes + (random.Between(5, 9) << 13);
  plan.clients = 8;
  plan.queue_depth = 2;
  plan.keys = 12;
  plan.value_bytes_max = 1200;
  plan.hot_share = 0.5;
  plan.stall_chance = 0.2;
  plan.pause_max = Nanoseconds(1'000'000);
  plan.kill_chance = 0.003;
  plan.tidy_chance = 0.003;
  return plan;
}

// The server dies while moves are only in the caches, and the next one goes on with the cleaning. In a large index the
// entries are far apart, so that no entry is written back together with another.
Plan OfMoveCrashes(uint64_t seed, Random& random) {
  Plan plan = OfTightLog(seed, random);
  plan.index_entries = 2048;
  plan.pool_size = kTightPoolBytes + (plan.index_entries << 4) + (random.Between(5, 12) << 13);
  plan.clients = 4;
  plan.keys = 20;
  plan.value_bytes_max = 300;
  plan.hot_share = 0.7;
  plan.percent_gets = 30;
  plan.crash_chance = 0.001;
  plan.move_crash_chance = 0.1;
  plan.start_crash_chance = 0.01;
  plan.power_cut_share = 0.5;
  plan.cleaner_chance = 0.5;
  return plan;
}

// Few keys, which come to the same addresses again and again, and readers that pause.
Plan OfSamePlaces(uint64_t seed, Random& random) {
  Plan plan = OfTightLog(seed, random);
  plan.pool_size = kTightPoolBytes + (random.Between(5, 10) << 13);
  plan.clients = 6;
  plan.queue_depth = 1;
  plan.keys = static_cast<uint32_t>(random.Between(2, 4));
  plan.value_bytes_max = 900;
  plan.pause_chance = 0.005;
  plan.pause_max = Nanoseconds(100'000);
  return plan;
}

}  // namespace

Plan Plan::OfCleaning(uint64_t seed) {
  Random random(seed ^ 0xc1ea2);
  const uint64_t style = random.Uniform(6);
  if (style == 3) return OfStalls(seed, random);
  if (style == 4) return OfMoveCrashes(seed, random);
  if (style == 5) return OfSamePlaces(seed, random);
  const bool crashes = random.Chance(0.6);
  Plan plan = crashes ? OfCrashes(seed) : OfMixed(seed);
  plan.shards = 1;
  plan.index_entries = format::kIndexSlotsMin;
  plan.region_size = 16 << 10;
  plan.segment_size = random.Chance(0.5) ? 4 << 10 : 8 << 10;
  plan.pool_size = (128 << 10) + (random.Between(5, 10) << 14);
  plan.reservations_per_client = 64;
  plan.operations = static_cast<uint32_t>(random.Between(400, 1000));
  plan.percent_gets = 30;
  plan.percent_deletes = static_cast<uint32_t>(random.Between(0, 10));
  plan.value_bytes_max = random.Chance(0.5) ? 1900 : 500;
  plan.crash_chance /= 3;
  plan.crash_anywhere_chance /= 3;
  plan.next_chance = 0.9;
  plan.start_chance = 0.3;
  constexpr double kCleaner[] = {0.1, 0.5, 0.9};
  plan.cleaner_chance = kCleaner[random.Uniform(std::size(kCleaner))];
  constexpr uint32_t kKeys[] = {4, 12, 30, 90};
  plan.keys = kKeys[random.Uniform(std::size(kKeys))];
  if (style == 0) {  // the cleaner moves older versions while new values are under way
    plan.keys = 12;
    plan.hot_share = 0.4;
    plan.clients = 5;
    plan.queue_depth = 4;
    plan.percent_gets = 45;
    plan.percent_deletes = 3;
    plan.placed_share = 0.8;
    plan.timeout = std::chrono::seconds(1);
    plan.network.long_delay_chance = 0.02;
    plan.network.long_delay_max = Nanoseconds(3'000'000);
    plan.kill_chance = 0.002;
    plan.cleaner_chance = 0.9;
  }
  if (style == 1) plan.damage_chance = 0.005;
  // Of 5 regions the shard writes one, the cleaner copies into one, and one is free. Half of the other two is enough,
  // if no client keeps places without writing to them.
  const bool nobody_is_stuck = plan.pause_chance == 0 && plan.timeout >= std::chrono::milliseconds(20);
  plan.has_room = nobody_is_stuck && plan.keys * (plan.value_bytes_max + 100) < 16 << 10;
  return plan;
}

Plan Plan::OfGrowth(uint64_t seed) {
  Random random(seed ^ 0x960);
  const bool crashes = random.Chance(0.6);
  Plan plan = crashes ? OfCrashes(seed) : OfChurn(seed);
  plan.shards = 1;
  plan.ports = 1;
  plan.index_entries = format::kIndexSlotsMin;
  plan.index_grows = true;
  plan.region_size = plan.segment_size = 4 << 10;
  plan.pool_size = kTightPoolBytes + (random.Between(50, 90) << 12);
  plan.regions_per_head = 100;
  plan.clients = 4;
  plan.queue_depth = 6;
  plan.keys = static_cast<uint32_t>(random.Between(150, 450));
  plan.operations = 3 * plan.keys + 400;
  plan.value_bytes_max = 40;
  plan.percent_gets = 35;
  plan.percent_deletes = static_cast<uint32_t>(random.Between(0, 8));
  plan.crash_chance /= 20;
  plan.crash_anywhere_chance /= 20;
  plan.split_crash_chance = crashes ? 0.3 : 0;
  plan.next_chance = 0.9;
  plan.start_chance = plan.server_chance = plan.client_chance = 0.5;
  plan.timeout = std::chrono::seconds(1);
  if (random.Chance(0.5)) {  // clients that sleep while the index grows
    plan.pause_chance = 0.002;
    plan.pause_max = Nanoseconds(10'000'000);
  }
  plan.check_bytes = false;
  plan.has_room = false;
  return plan;
}

Plan Plan::OfScans(uint64_t seed) {
  Random random(seed ^ 0x5ca4);
  constexpr std::array kBases = {&Plan::OfMixed,   &Plan::OfChurn,  &Plan::OfFullIndex, &Plan::OfReports,
                                 &Plan::OfCrashes, &Plan::OfMoves,  &Plan::OfDecay,     &Plan::OfCleaning,
                                 &Plan::OfExpiry,  &Plan::OfGrowth, &Plan::OfGrowth};
  Plan plan = kBases.at(random.Uniform(kBases.size()))(seed);
  plan.scan_share = random.Chance(0.5) ? 0.02 : 0.15;
  return plan;
}

Plan Plan::OfForgeries(uint64_t seed) {
  Random random(seed ^ 0xf049);
  Plan plan = random.Chance(0.6) ? OfCrashes(seed) : OfCleaning(seed);
  plan.network.memory_windows = true;
  plan.forge_chance = random.Chance(0.5) ? 0.02 : 0.2;
  plan.damage_chance = 0;
  plan.grow_chance = 0;
  plan.check_bytes = false;
  plan.has_room = false;
  return plan;
}

Plan Plan::OfJournal(uint64_t seed) {
  Random random(seed ^ 0x3047a1);
  constexpr std::array kBases = {&Plan::OfCrashes,  &Plan::OfCrashes,  &Plan::OfDeletes,  &Plan::OfDeletes,
                                 &Plan::OfMoves,    &Plan::OfCleaning, &Plan::OfCleaning, &Plan::OfConditions,
                                 &Plan::OfExpiry,   &Plan::OfExpiry,   &Plan::OfMixed,    &Plan::OfGrowth,
                                 &Plan::OfForgeries};
  Plan plan = kBases.at(random.Uniform(kBases.size()))(seed);
  plan.journal = true;
  constexpr double kChances[] = {0.02, 0.1, 0.5};
  plan.hold_chance = kChances[random.Uniform(std::size(kChances))];
  plan.flush_methods.fill(format::FlushMethod::kServerFlush);
  if (plan.crash_chance > 0 || plan.crash_anywhere_chance > 0) plan.power_cut_share = random.Chance(0.5) ? 0.5 : 0.9;
  plan.grow_chance = 0;
  plan.check_bytes = false;
  plan.has_room = false;
  return plan;
}

Plan Plan::OfMirror(uint64_t seed) {
  Plan plan = OfJournal(seed);
  plan.mirror = true;
  plan.rest_flip_chance = 0;  // The mirror has no such flip.
  plan.damage_chance = 0;
  return plan;
}

std::string Plan::ToText() const {
  std::string flush = format::FlushMethodName(flush_methods[0]);
  if (ports > 1) flush.append(" and ").append(format::FlushMethodName(flush_methods[1]));
  return std::string(NameOf(kind)) + " plan, seed " + std::to_string(seed) + ": " + std::to_string(shards) +
         " shards, " + std::to_string(ports) + " ports, " + std::to_string(clients) + " clients, " +
         std::to_string(keys) + " keys, " + std::to_string(operations) + " operations, queue depth " +
         std::to_string(queue_depth) + ", flush " + flush;
}

}  // namespace erda::sim
