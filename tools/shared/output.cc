#include "tools/shared/output.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/boot.h"
#include "base/printable.h"
#include "format/geometry.h"
#include "tools/shared/command_line.h"

namespace erda::tools {

namespace {

using inspect::Damage;
using inspect::PoolReport;
using inspect::SuperblockCopy;
using nlohmann::ordered_json;

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

const char* RoleName(format::MirrorRole role) {
  switch (role) {
    case format::MirrorRole::kNone:
      return "none";
    case format::MirrorRole::kPrimary:
      return "primary";
    case format::MirrorRole::kFilling:
      return "filling";
    case format::MirrorRole::kInSync:
      break;
  }
  return "in sync";
}

bool IsMirrored(const format::Superblock& superblock) { return superblock.format_version == format::kMirroredVersion; }

// As text, since a JSON reader may keep only 53 bits of a number.
std::string MirrorId(const format::Superblock& superblock) { return fmt::format("{:016x}", superblock.mirror_id); }

std::string Uuid(const format::Superblock& superblock) { return fmt::format("{:02x}", fmt::join(superblock.uuid, "")); }

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

ordered_json JsonOf(const format::Geometry& g) {
  return {{"pool_size", g.pool_size},
          {"shards", g.shards},
          {"heads_per_shard", g.heads_per_shard},
          {"regions_per_shard", g.regions_per_shard},
          {"layers", g.layers()},
          {"region_size", g.region_size},
          {"segment_size", g.segment_size},
          {"index_slots", g.index_slots},
          {"block_slots", g.block_slots()},
          {"index_offset", g.index_offset},
          {"regions_offset", g.regions_offset},
          {"usable_share", format::UsableShare(g)},
          {"growth_limit", format::GrowthLimit(g)}};
}

ordered_json JsonOf(const inspect::Segments& segments) {
  return {{"open", segments.open},
          {"sealed", segments.sealed},
          {"settled", segments.settled},
          {"copying", segments.copying}};
}

ordered_json JsonOf(const inspect::ShardReport& shard) {
  ordered_json json = {
      {"shard", shard.shard},
      {"version_limit", shard.version_limit},
      {"index_slots", shard.index_slots},
      {"index_blocks", shard.index_blocks},
      {"window_slots", shard.window_slots},
      {"windows_grown", shard.windows_grown},
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

// --- Text

std::string Text(char name, const SuperblockCopy& copy) {
  if (!IsValid(copy)) return fmt::format("superblock {}  {}\n", name, StateName(copy.state));
  return fmt::format("superblock {}  {}: generation {}, {}\n", name, StateName(copy.state), copy.superblock.generation,
                     copy.superblock.clean == 1 ? "clean" : "in use");
}

std::string MirrorText(const format::Superblock& superblock) {
  if (!IsMirrored(superblock)) return "";
  std::string id;
  if (superblock.is_mirror()) id = ", id " + MirrorId(superblock);
  if (superblock.names_mirror()) id = ", mirror " + MirrorId(superblock) + " may be promoted";
  return fmt::format("mirror role   {}{}; epoch {}\n", RoleName(superblock.role()), id, superblock.epoch);
}

std::string Text(const inspect::ShardReport& shard, bool verify) {
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
  if (shard.windows_grown != 0) {
    line("windows",
         fmt::format("grown {} of 16, up to {} slots: misses there take longer, until the pool is dumped and "
                     "loaded into a new one",
                     shard.windows_grown, shard.window_slots));
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

std::string Dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void AddFrame(ordered_json& json, const PoolReport& report) {
  json["superblocks"] = {{"a", JsonOf(report.superblocks[0])}, {"b", JsonOf(report.superblocks[1])}};
  json["journal"] = report.superblock.journaled != 0;
  if (const format::Superblock& sb = report.superblock; IsMirrored(sb)) {
    json["mirror"] = {{"role", RoleName(sb.role())}, {"epoch", sb.epoch}, {"id", MirrorId(sb)}};
  }
  json["geometry"] = JsonOf(report.superblock.geometry);
}

void AddDamage(ordered_json& json, const PoolReport& report) {
  json["damage_count"] = report.damage_count;
  json["damage"] = ordered_json::array();
  for (const Damage& damage : report.damage) json["damage"].push_back(JsonOf(damage));
}

struct Sums {
  uint64_t keys = 0;
  uint64_t verified_bytes = 0;
};
Sums SumsOf(const PoolReport& report) {
  Sums sums;
  for (const auto& shard : report.shards) {
    sums.keys += shard.keys;
    sums.verified_bytes += shard.verified_bytes;
  }
  return sums;
}

// Does the same as FormattedPool::needs_verification, for the file system on which the pool was served.
bool NeedsVerification(const PoolReport& report) {
  const format::BootId& boot = report.superblock.boot;
  return report.needs_recovery && boot != format::kNoBoot && boot != BootOfMachine();
}

std::string ClosedText(const PoolReport& report) {
  if (!report.needs_recovery) return "closed cleanly\n";
  if (report.superblock.journaled != 0) {
    return "not closed cleanly: it needs recovery, which a server does when it opens it with its journal\n";
  }
  if (!NeedsVerification(report)) {
    return "not closed cleanly: it needs recovery, which a server does when it opens it\n";
  }
  const char* const since = report.superblock.boot == format::kUnvouchedBoot
                                ? "a sync of its file failed, or it was promoted by force"
                                : "the machine was started again since, or it is another machine's";
  return fmt::format(
      "not closed cleanly, and {}: a server verifies every value when it opens it; acknowledged puts may be missing\n",
      since);
}

std::string DamageText(const PoolReport& report, const char* looked_at) {
  if (report.damage_count == 0) return fmt::format("no damage{}\n", looked_at);
  std::string text = fmt::format("damage: {}{}\n", report.damage_count, looked_at);
  for (const Damage& damage : report.damage) text += Text(damage);
  const uint64_t more = report.damage_count - report.damage.size();
  if (more != 0) text += fmt::format("  and {} more\n", more);
  return text;
}

}  // namespace

std::string FrameText(const std::string& pool, const PoolReport& report) {
  const auto& g = report.superblock.geometry;
  std::string text = fmt::format("pool {}\n", pool);
  text += fmt::format("{} bytes, format version {}, uuid {}{}\n", g.pool_size, report.superblock.format_version,
                      Uuid(report.superblock), report.superblock.journaled != 0 ? ", with a journal" : "");
  text += ClosedText(report);
  text += Text('A', report.superblocks[0]) + Text('B', report.superblocks[1]);
  text += MirrorText(report.superblock);
  text += fmt::format(
      "geometry      shards {}; in each heads {}, regions {} of {} bytes, segments of {} bytes, index slots {}\n",
      g.shards, g.heads_per_shard, g.regions_per_shard, g.region_size, g.segment_size, g.index_slots);
  text += fmt::format("usable        {:.1f} % of the pool, less what the index takes as it grows\n",
                      100.0 * format::UsableShare(g));
  text += fmt::format("grows         to {} bytes\n", format::GrowthLimit(g));
  return text;
}

std::string FrameJson(const std::string& pool, const PoolReport& report) {
  ordered_json json = {
      {"pool", pool}, {"needs_recovery", report.needs_recovery}, {"needs_verification", NeedsVerification(report)}};
  AddFrame(json, report);
  return Dump(json);
}

std::string FullText(const std::string& pool, const PoolReport& report, bool verify) {
  std::string text = FrameText(pool, report);
  for (const auto& shard : report.shards) text += Text(shard, verify);
  return text + "\n" + DamageText(report, verify ? "" : " (values were not read: --verify)");
}

std::string FullJson(const std::string& pool, const PoolReport& report, bool verify) {
  ordered_json json = {{"pool", pool}, {"needs_recovery", report.needs_recovery}, {"values_verified", verify}};
  AddDamage(json, report);
  AddFrame(json, report);
  json["shards"] = ordered_json::array();
  for (const auto& shard : report.shards) json["shards"].push_back(JsonOf(shard));
  return Dump(json);
}

std::string VerdictText(const std::string& pool, const PoolReport& report, bool verify) {
  const Sums sums = SumsOf(report);
  const std::string read = verify ? fmt::format("values of {} bytes read", sums.verified_bytes) : "values not read";
  return fmt::format("pool {}: keys {}, {}\n", pool, sums.keys, read) + ClosedText(report) + DamageText(report, "");
}

std::string VerdictJson(const std::string& pool, const PoolReport& report, bool verify) {
  const Sums sums = SumsOf(report);
  ordered_json json = {{"pool", pool},
                       {"needs_recovery", report.needs_recovery},
                       {"values_verified", verify},
                       {"keys", sums.keys},
                       {"verified_bytes", sums.verified_bytes}};
  AddDamage(json, report);
  return Dump(json);
}

int Print(const char* program, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
  return Fail(program, fmt::format("cannot write to stdout: {}", std::strerror(errno)), kExitFailure);
}

}  // namespace erda::tools
