#include "tools/erda-pool/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "tools/shared/command_line.h"
#include "tools/shared/geometry_options.h"
#include "tools/shared/output.h"

namespace erda::tools {

namespace {

constexpr uint64_t kStep = 1 << 20;  // Of pool sizes.
constexpr uint64_t kPoolBytesMax = uint64_t{1} << 46;
// The index has up to 43 bytes for each key while it doubles.
constexpr double kIndexLoad = 16.0 / 43;
// The part of the regions for live objects. The rest is for overwritten values, until it is cleaned.
constexpr double kFilled = 0.9;
// The share of the log's bytes that the records may take. It is below 0.85, from where on erda-server warns: it must
// not warn of a pool that is as full as planned.
constexpr double kLive = 0.8;
// Hashes spread the keys. No part has more than its share by this number of standard deviations.
constexpr double kDeviations = 6;

// Returns the most records that one of the parts may get.
double FullestOf(double records, double parts) {
  const double mean = records / parts;
  return parts == 1 ? mean : mean + kDeviations * std::sqrt(mean);
}

uint64_t ObjectBytesOf(const PlanArguments& arguments) {
  return format::ObjectSpace(format::LabelSize(arguments.key_size, true), arguments.value_size);
}

// Returns the smallest pool of this geometry wish that takes the records.
std::optional<Plan> SmallestOf(const PlanArguments& arguments, format::GeometryWish wish) {
  const auto takes = [&](uint64_t size) -> std::optional<Plan> {
    wish.pool_size = size;
    const auto geometry = format::ChooseGeometry(wish);
    if (!geometry.ok() || !TakesRecords(*geometry, arguments)) return std::nullopt;
    return Plan{wish, *geometry, ObjectBytesOf(arguments)};
  };
  uint64_t high = kStep;
  while (!takes(high)) {
    high *= 2;
    if (high > kPoolBytesMax) return std::nullopt;
  }
  uint64_t low = high / 2;
  while (high - low > std::max(kStep, AlignDown(high / 64, kStep))) {
    const uint64_t middle = AlignDown((low + high) / 2, kStep);
    if (middle == low) break;
    (takes(middle) ? high : low) = middle;
  }
  return takes(high);
}

std::string Bytes(uint64_t size) {
  return size % (1 << 30) == 0 ? fmt::format("{}G", size >> 30) : fmt::format("{}M", size >> 20);
}

Result<Plan> NoPool(const PlanArguments& arguments) {
  return Status(
      Code::kInvalidArgument,
      fmt::format("no pool can store {} records with keys of {} and values of {} bytes: a value has at most {} "
                  "bytes, and a log at most 7.5 TiB",
                  arguments.records, arguments.key_size, arguments.value_size,
                  format::kRegionBytesMax - format::FirstObjectOffset(0) -
                      format::ValueOffset(format::LabelSize(arguments.key_size, true))));
}

// Returns the options for erda-pool create and erda-server.
std::string OptionsOf(const Plan& plan) {
  std::string options = fmt::format("--size {} --shards {}", Bytes(plan.wish.pool_size), plan.wish.shards);
  if (plan.wish.region_size != 0) options += fmt::format(" --region-size {}", plan.wish.region_size);
  if (plan.wish.segment_size != 0) options += fmt::format(" --segment-size {}", plan.wish.segment_size);
  if (plan.wish.grow_to != 0) options += fmt::format(" --grow-to {}", plan.wish.grow_to);
  return options;
}

}  // namespace

bool TakesRecords(const format::Geometry& g, const PlanArguments& arguments) {
  if (arguments.value_size > g.segment_size) return false;  // Checked before anything is added to it.
  const uint64_t bytes = ObjectBytesOf(arguments);
  const uint64_t in_first = (g.segment_size - format::FirstObjectOffset(0)) / bytes;
  const uint64_t in_others = (g.segment_size - format::FirstObjectOffset(1)) / bytes;
  if (in_first == 0) return false;
  const uint64_t in_region = in_first + (g.segments_per_region() - 1) * in_others;

  const auto records = static_cast<double>(arguments.records);
  const double of_shard = FullestOf(records, g.shards);
  const double of_head = FullestOf(records, g.heads());
  const double index_bytes = std::max(0.0, of_shard / kIndexLoad - static_cast<double>(g.index_slots)) * 16;
  const double runs = index_bytes == 0 ? 0 : std::ceil(index_bytes / static_cast<double>(g.region_size)) + 2;
  if (runs > g.runs_max()) return false;
  // Each head has one region for writes and one for copies; each shard has a free one.
  const double for_objects = g.regions_per_shard - runs - 1.0 - 2.0 * g.heads_per_shard;
  const double log_bytes = (g.regions_per_shard - runs) * static_cast<double>(g.region_size);
  if (records / g.shards * static_cast<double>(bytes) > kLive * log_bytes) return false;
  const double needed = std::ceil(of_head / static_cast<double>(in_region)) * g.heads_per_shard;
  return for_objects > 0 && needed <= std::max(for_objects * kFilled, for_objects - 8);
}

Result<Plan> MakePlan(const PlanArguments& arguments) {
  if (arguments.value_size > format::kRegionBytesMax) return NoPool(arguments);
  const format::GeometryWish usual = {.shards = arguments.shards, .grow_to = arguments.grow_to};
  std::optional<Plan> best = SmallestOf(arguments, usual);
  // Large values fill other segments better than the default ones. The gain must be worth an extra option.
  constexpr double kWorthwhile = 0.85;
  double least = best ? kWorthwhile * static_cast<double>(best->wish.pool_size) : HUGE_VAL;
  for (uint64_t segment = 1 << 20; segment <= format::kRegionBytesMax; segment *= 2) {
    if (segment / 64 > ObjectBytesOf(arguments) || segment < ObjectBytesOf(arguments)) continue;
    for (uint64_t region = segment; region <= std::min(4 * segment, format::kRegionBytesMax); region *= 2) {
      format::GeometryWish wish = usual;
      wish.region_size = region;
      wish.segment_size = segment;
      auto plan = SmallestOf(arguments, wish);
      if (!plan || static_cast<double>(plan->wish.pool_size) >= least) continue;
      least = static_cast<double>(plan->wish.pool_size);
      best = plan;
    }
  }
  return best ? Result<Plan>(*best) : NoPool(arguments);
}

void AddPlanOptions(CLI::App& command, PlanArguments& arguments) {
  AddNumber<uint64_t>(command, "--records", arguments.records, 1, uint64_t{1} << 40,
                      "The number of keys that the pool must hold")
      ->required();
  AddNumber<uint64_t>(command, "--key-size", arguments.key_size, 1, format::kKeyBytesMax, "Bytes of a key, on average")
      ->required();
  AddSize(command, "--value-size", arguments.value_size,
          "Bytes of a value, on average; from a megabyte on, of the largest value")
      ->required();
  AddNumber<uint32_t>(command, "--shards", arguments.shards, 1, format::kShardsMax,
                      "Shards: one for each core that puts may use; default 1");
  AddSize(command, "--grow-to", arguments.grow_to, "The size that resize must be able to give the pool");
}

int PrintPlan(const char* program, const PlanArguments& arguments, bool json) {
  const auto plan = MakePlan(arguments);
  if (!plan.ok()) return Fail(program, plan.status().ToString(), kExitUsage);
  const format::Geometry& g = plan->geometry;
  const std::string options = OptionsOf(*plan);
  if (json) {
    const nlohmann::ordered_json object = {{"records", arguments.records},
                                           {"key_size", arguments.key_size},
                                           {"value_size", arguments.value_size},
                                           {"record_bytes", plan->object_bytes},
                                           {"pool_size", g.pool_size},
                                           {"shards", g.shards},
                                           {"region_size", g.region_size},
                                           {"segment_size", g.segment_size},
                                           {"index_slots", g.index_slots},
                                           {"largest_value", format::ValueBytesMax(g, arguments.key_size, true)},
                                           {"growth_limit", format::GrowthLimit(g)},
                                           {"options", options}};
    return Print(program, object.dump(2) + "\n");
  }
  std::string text = fmt::format("{} records of {} bytes in the log need a pool of {} bytes\n", arguments.records,
                                 plan->object_bytes, g.pool_size);
  text += fmt::format("geometry      shards {}; in each heads {}, regions {} of {} bytes, segments of {} bytes\n",
                      g.shards, g.heads_per_shard, g.regions_per_shard, g.region_size, g.segment_size);
  text += fmt::format("values        up to {} bytes\n", format::ValueBytesMax(g, arguments.key_size, true));
  text += fmt::format("grows         to {} bytes\n\n", format::GrowthLimit(g));
  text += fmt::format("erda-pool create /var/lib/erda/pool {}\n", options);
  text += "erda-server --pool /var/lib/erda/pool --listen shm:/run/erda/socket\n";
  return Print(program, text);
}

}  // namespace erda::tools
