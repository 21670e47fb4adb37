// erda-inspect: what is in a pool, without a server, and without changing a byte of it.
#include <fmt/core.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/printable.h"
#include "erda/status.h"
#include "format/geometry.h"
#include "inspect/inspection.h"
#include "inspect/read_only_pool.h"
#include "tools/command_line.h"

namespace {

using erda::Printable;
using erda::inspect::Damage;
using erda::inspect::PoolReport;
using erda::inspect::SuperblockCopy;
using erda::tools::Fail;
using nlohmann::ordered_json;

constexpr const char* kProgram = "erda-inspect";
constexpr int kExitDamage = 3;
constexpr const char* kFooter = R"(
The pool is only read, and no server may have it open meanwhile.

Exit codes: 0 sound (a pool that needs recovery is, too: a server recovers it when it opens it),
            1 it cannot be read or is no pool, 2 bad usage, 3 there is damage.

Example: erda-inspect --verify /var/lib/erda/pool)";

struct Arguments {
  std::string pool;
  erda::inspect::Options options;
  bool json = false;
};

const char* StateName(SuperblockCopy::State state) {
  switch (state) {
    case SuperblockCopy::State::kCounts:
      return "counts";
    case SuperblockCopy::State::kOlder:
      return "older";
    case SuperblockCopy::State::kNeverWritten:
      return "never written";
    case SuperblockCopy::State::kNotValid:
      break;
  }
  return "not valid";
}

bool IsValid(const SuperblockCopy& copy) {
  return copy.state == SuperblockCopy::State::kCounts || copy.state == SuperblockCopy::State::kOlder;
}

std::string Uuid(const erda::format::Superblock& superblock) {
  return fmt::format("{:02x}", fmt::join(superblock.uuid, ""));
}

// --- JSON

ordered_json JsonOf(const SuperblockCopy& copy) {
  ordered_json json = {{"state", StateName(copy.state)}};
  if (!IsValid(copy)) return json;
  json["format_version"] = copy.superblock.format_version;
  json["uuid"] = Uuid(copy.superblock);
  json["generation"] = copy.superblock.generation;
  json["clean"] = copy.superblock.clean == 1;
  return json;
}

ordered_json JsonOf(const erda::format::Geometry& g) {
  return {{"pool_size", g.pool_size},
          {"shards", g.shards},
          {"heads_per_shard", g.heads_per_shard},
          {"regions_per_shard", g.regions_per_shard},
          {"region_size", g.region_size},
          {"segment_size", g.segment_size},
          {"index_slots", g.index_slots},
          {"block_slots", g.block_slots()},
          {"index_offset", g.index_offset},
          {"regions_offset", g.regions_offset},
          {"usable_share", erda::format::UsableShare(g)}};
}

ordered_json JsonOf(const erda::inspect::Segments& segments) {
  return {{"open", segments.open},
          {"sealed", segments.sealed},
          {"settled", segments.settled},
          {"copying", segments.copying}};
}

ordered_json JsonOf(const erda::inspect::ShardReport& shard) {
  ordered_json json = {
      {"shard", shard.shard},
      {"version_limit", shard.version_limit},
      {"index_slots", shard.index_slots},
      {"index_blocks", shard.index_blocks},
      {"used_slots", shard.used_slots},
      {"keys", shard.keys},
      {"keys_at_close", shard.keys_at_close},
      {"in_flight",
       {{"total", shard.unsettled()},
        {"whole", shard.whole},
        {"not_whole", shard.not_whole},
        {"tombstones", shard.tombstones}}},
      {"log",
       {{"bytes", shard.log_bytes},
        {"object_bytes", shard.object_bytes},
        {"live_bytes", shard.live_bytes},
        {"dead_bytes", shard.dead_bytes()},
        {"cut_off", shard.cut_off}}},
      {"regions",
       {{"linked", shard.regions_linked},
        {"free", shard.regions_free},
        {"emptied", shard.regions_emptied},
        {"of_index", shard.regions_index},
        {"unopened", shard.regions_unopened}}},
      {"verified", {{"objects", shard.verified}, {"bytes", shard.verified_bytes}}},
  };
  json["last_move"] = nullptr;
  if (shard.move) {
    json["last_move"] = {{"from", shard.move->from}, {"to", shard.move->to}, {"under_way", shard.move->under_way}};
  }
  json["heads"] = ordered_json::array();
  for (const auto& head : shard.heads) {
    json["heads"].push_back({{"head", head.head},
                             {"regions", head.regions},
                             {"segments", JsonOf(head.segments)},
                             {"objects", head.objects},
                             {"chunks", head.chunks},
                             {"object_bytes", head.object_bytes}});
  }
  return json;
}

ordered_json JsonOf(const Damage& damage) {
  ordered_json json = {{"shard", damage.shard}, {"what", damage.what}, {"key", nullptr}};
  if (damage.key) json["key"] = Printable(*damage.key);
  if (damage.slot) json["slot"] = *damage.slot;
  if (damage.head) json["head"] = *damage.head;
  if (damage.address) json["address"] = *damage.address;
  return json;
}

std::string Json(const Arguments& arguments, const PoolReport& report) {
  ordered_json json = {{"pool", arguments.pool},
                       {"needs_recovery", report.needs_recovery},
                       {"values_verified", arguments.options.verify},
                       {"damage_count", report.damage_count},
                       {"damage", ordered_json::array()},
                       {"superblocks", {{"a", JsonOf(report.superblocks[0])}, {"b", JsonOf(report.superblocks[1])}}},
                       {"geometry", JsonOf(report.superblock.geometry)},
                       {"shards", ordered_json::array()}};
  for (const Damage& damage : report.damage) json["damage"].push_back(JsonOf(damage));
  for (const auto& shard : report.shards) json["shards"].push_back(JsonOf(shard));
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// --- Text

std::string Text(char name, const SuperblockCopy& copy) {
  if (!IsValid(copy)) return fmt::format("superblock {}  {}\n", name, StateName(copy.state));
  return fmt::format("superblock {}  {}: generation {}, {}\n", name, StateName(copy.state), copy.superblock.generation,
                     copy.superblock.clean == 1 ? "clean" : "in use");
}

std::string Text(const erda::inspect::ShardReport& shard, bool verify) {
  std::string text = fmt::format("\nshard {}\n", shard.shard);
  const auto line = [&text](const char* name, const std::string& what) {
    text += fmt::format("  {:<11} {}\n", name, what);
  };
  const double fill = 100.0 * static_cast<double>(shard.used_slots) / static_cast<double>(shard.index_slots);
  line("keys", fmt::format("{}", shard.keys));
  line("index", fmt::format("{} of {} slots used ({:.1f} %), in {} blocks", shard.used_slots, shard.index_slots, fill,
                            shard.index_blocks));
  line("in flight", fmt::format("unsettled {}: whole {}, not whole {}, tombstones {}", shard.unsettled(), shard.whole,
                                shard.not_whole, shard.tombstones));
  line("log", fmt::format("{} bytes, objects {}: live {}, dead {}", shard.log_bytes, shard.object_bytes,
                          shard.live_bytes, shard.dead_bytes()));
  line("regions", fmt::format("linked {}, free {}, emptied {}, of the index {}", shard.regions_linked,
                              shard.regions_free, shard.regions_emptied, shard.regions_index));
  for (const auto& head : shard.heads) {
    line(fmt::format("head {}", head.head).c_str(),
         fmt::format("regions {}; segments open {}, sealed {}, settled {}, copying {}; objects {}, chunks {}, {} bytes",
                     head.regions, head.segments.open, head.segments.sealed, head.segments.settled,
                     head.segments.copying, head.objects, head.chunks, head.object_bytes));
  }
  line("versions", fmt::format("below {}", shard.version_limit));
  if (shard.move) {
    line("last move",
         fmt::format("slot {} to {}{}", shard.move->from, shard.move->to, shard.move->under_way ? ", under way" : ""));
  }
  if (shard.cut_off != 0)
    line("cut off", fmt::format("open segments {}: something that is no object ends them", shard.cut_off));
  if (shard.left_over != 0)
    line("left over", fmt::format("of the last split of the index: entries {}", shard.left_over));
  if (shard.regions_unopened != 0) line("unopened", fmt::format("linked regions {}", shard.regions_unopened));
  if (verify) line("verified", fmt::format("whole {}, {} bytes", shard.verified, shard.verified_bytes));
  return text;
}

std::string Text(const Damage& damage) {
  std::string where;
  if (damage.key) where += fmt::format("key {}, ", Printable(*damage.key));
  if (damage.slot) where += fmt::format("slot {}, ", *damage.slot);
  if (damage.head && damage.address) where += fmt::format("head {} address {:#x}, ", *damage.head, *damage.address);
  if (!where.empty()) where = " (" + where.substr(0, where.size() - 2) + ")";
  return fmt::format("  shard {}: {}{}\n", damage.shard, damage.what, where);
}

std::string Text(const Arguments& arguments, const PoolReport& report) {
  const auto& g = report.superblock.geometry;
  std::string text = fmt::format("pool {}\n", arguments.pool);
  text += fmt::format("{} bytes, format version {}, uuid {}\n", g.pool_size, report.superblock.format_version,
                      Uuid(report.superblock));
  text += report.needs_recovery ? "not closed cleanly: it needs recovery, which a server does when it opens it\n"
                                : "closed cleanly\n";
  text += Text('A', report.superblocks[0]) + Text('B', report.superblocks[1]);
  text += fmt::format(
      "geometry      shards {}; in each heads {}, regions {} of {} bytes, segments of {} bytes, index slots {}\n",
      g.shards, g.heads_per_shard, g.regions_per_shard, g.region_size, g.segment_size, g.index_slots);
  text += fmt::format("usable        {:.1f} % of the pool, at the least\n", 100.0 * erda::format::UsableShare(g));
  for (const auto& shard : report.shards) text += Text(shard, arguments.options.verify);
  const char* looked_at = arguments.options.verify ? "" : " (values were not read: --verify)";
  if (report.damage_count == 0) return text + fmt::format("\nno damage{}\n", looked_at);
  text += fmt::format("\ndamage: {}{}\n", report.damage_count, looked_at);
  for (const Damage& damage : report.damage) text += Text(damage);
  const uint64_t more = report.damage_count - report.damage.size();
  if (more != 0) text += fmt::format("  and {} more\n", more);
  return text;
}

int Inspect(const Arguments& arguments) {
  auto pool = erda::inspect::ReadOnlyPool::Open(arguments.pool);
  if (!pool.ok()) return Fail(kProgram, pool.status().ToString(), erda::tools::kExitFailure);
  const auto report = erda::inspect::InspectPool((*pool)->bytes(), arguments.options);
  if (!report.ok()) {
    const std::string what = fmt::format("pool {}: {}", arguments.pool, report.status().message());
    return Fail(kProgram, what, erda::tools::kExitFailure);
  }
  const std::string text = arguments.json ? Json(arguments, *report) : Text(arguments, *report);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    const std::string what = fmt::format("cannot write to stdout: {}", std::strerror(errno));
    return Fail(kProgram, what, erda::tools::kExitFailure);
  }
  return report->damage_count == 0 ? 0 : kExitDamage;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Tells what is in a pool that no server has open.", kProgram);
  app.footer(kFooter);
  app.add_option("POOL", arguments.pool, "A file or /dev/daxX.Y")->required()->type_name("");
  app.add_flag("--verify", arguments.options.verify, "Read all values, and check them too");
  app.add_flag("--json", arguments.json, "As one JSON object");
  erda::tools::AddNumber<size_t>(
      app, "--list", arguments.options.damage_listed, 0, 1'000'000'000,
      fmt::format("How much damage is listed, and not only counted; default {}", arguments.options.damage_listed));
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  return Inspect(arguments);
}
