#include "tools/erda-pool/salvage.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/bytes.h"
#include "base/printable.h"
#include "inspect/read_only_pool.h"
#include "tools/shared/command_line.h"
#include "tools/shared/dump_file.h"
#include "tools/shared/files.h"
#include "tools/shared/geometry_options.h"
#include "tools/shared/output.h"

namespace erda::tools {

namespace {

using inspect::FrameSource;
using inspect::SalvagedValue;
using inspect::SalvageReport;

const char* SourceName(FrameSource source) {
  switch (source) {
    case FrameSource::kSuperblock:
      return "superblock";
    case FrameSource::kDamagedSuperblock:
      return "damaged superblock";
    case FrameSource::kOptions:
      return "options";
    case FrameSource::kDefaults:
      break;
  }
  return "defaults";
}

// A dump that is being written to a file, or to stdout.
class Target {
 public:
  explicit Target(const std::string& path) : path_(path) {
    if (path != "-") file_.emplace(path);
    if (std::FILE* to = path == "-" ? stdout : file_->file(); to != nullptr) {
      writer_.emplace(to);
    } else {
      made_ = ErrnoStatus("cannot write " + file_->name());
    }
  }
  Status Begin() { return writer_ ? writer_->Begin() : made_; }
  Status Add(const SalvagedValue& value) {
    return writer_->Add(value.key, {reinterpret_cast<const char*>(value.value.data()), value.value.size()},
                        value.deadline);
  }
  Status End(uint64_t damaged) {
    if (auto status = writer_->End(damaged); !status.ok()) return status;
    const bool kept = file_ ? file_->Keep() : std::fflush(stdout) == 0;
    return kept ? Status() : ErrnoStatus("cannot write " + path_);
  }

 private:
  std::string path_;
  std::optional<cli::WholeFile> file_;
  Status made_;  // The outcome of making the file.
  std::optional<DumpWriter> writer_;
};

std::string Json(const std::string& pool, const SalvageArguments& arguments, const SalvageReport& report) {
  const format::Geometry& g = report.geometry;
  nlohmann::ordered_json json = {
      {"pool", pool},
      {"dump", arguments.file},
      {"complete", report.complete()},
      {"geometry",
       {{"from", SourceName(report.source)},
        {"pool_size", g.pool_size},
        {"shards", g.shards},
        {"region_size", g.region_size},
        {"segment_size", g.segment_size}}},
      {"keys", report.keys()},
      {"keys_named", report.named},
      {"keys_unnamed", report.unnamed},
      {"bytes", report.bytes},
      {"keys_deleted", report.deleted},
      {"keys_damaged", report.damaged},
      {"keys_older", report.older},
      {"keys_doubtful", report.doubtful},
      {"keys_unfinished", report.unfinished},
      {"regions_read", report.regions_read},
      {"regions_found", report.regions_found},
      {"regions_unread", report.regions_unread},
      {"regions_of_index", report.regions_index},
      {"segments_damaged", report.segments_damaged},
      {"bytes_skipped", report.bytes_skipped},
      {"bytes_missing", report.missing_bytes},
  };
  json["lost"] = nlohmann::ordered_json::array();
  for (const SalvageReport::Lost& lost : report.lost) {
    nlohmann::ordered_json one = {{"shard", lost.shard}, {"what", lost.what}, {"key", nullptr}};
    if (lost.key) one["key"] = Printable(*lost.key);
    if (lost.offset) one["offset"] = *lost.offset;
    json["lost"].push_back(one);
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Text(const std::string& pool, const SalvageArguments& arguments, const SalvageReport& report) {
  const format::Geometry& g = report.geometry;
  std::string text =
      fmt::format("pool {}: keys {} written to {}, {} bytes\n", pool, report.keys(), arguments.file, report.bytes);
  const auto line = [&text](const char* name, uint64_t number, const char* what) {
    if (number != 0) text += fmt::format("  {:<12} {}{}\n", name, number, what);
  };
  text += fmt::format("  {:<12} shards {}, regions of {} bytes, segments of {}, from the {}\n", "geometry", g.shards,
                      g.region_size, g.segment_size, SourceName(report.source));
  text += fmt::format("  {:<12} {} keys, which the index names\n", "named", report.named);
  line("unnamed", report.unnamed, " keys, which the index does not name: some of them may have been deleted");
  line("deleted", report.deleted, " keys, left out");
  line("damaged", report.damaged, " keys, left out: their newest value is damaged");
  line("older", report.older, " keys, written with an older value");
  line("doubtful", report.doubtful, " keys, written without a newer version that a client may have forged");
  line("unfinished", report.unfinished, " keys with a newer version that was never finished, or is damaged");
  text += fmt::format("  {:<12} {} read, {} of the index\n", "regions", report.regions_read, report.regions_index);
  line("found", report.regions_found, " regions, by their objects: the region table does not say where they belong");
  line("unread", report.regions_unread, " regions with something in them that cannot be read");
  line("segments", report.segments_damaged, " without a good header");
  line("skipped", report.bytes_skipped, " bytes that are not of an object");
  line("missing", report.missing_bytes, " bytes: the file is shorter than the pool");
  for (const SalvageReport::Lost& lost : report.lost) {
    text += fmt::format("  shard {}: {}", lost.shard, lost.what);
    if (lost.key) text += fmt::format(" (key {})", Printable(*lost.key));
    if (lost.offset) text += fmt::format(", at byte {}", *lost.offset);
    text += '\n';
  }
  return text + (report.complete() ? "all that is stored was read\n" : "something could not be read\n");
}

}  // namespace

void AddSalvageOptions(CLI::App& command, SalvageArguments& arguments) {
  arguments.command = &command;
  command.add_option("FILE", arguments.file, "The dump to write, or - for stdout; erda-cli load reads it")
      ->required()
      ->type_name("");
  command
      .add_option("--unnamed", arguments.unnamed_file,
                  "A separate dump for the keys that the index does not name. Some of these may have been deleted; "
                  "default the same dump")
      ->type_name("FILE");
  command.add_flag("--older", arguments.options.older,
                   "If the newest value of a key is damaged, write the value before it, if that is there");
  command.add_flag("--newest", arguments.options.newest,
                   "Write the newest version of each key, also where a client may have forged it");
  AddNumber<size_t>(
      command, "--list", arguments.options.listed, 0, 1'000'000'000,
      fmt::format("List at most N lost things, and only count the others; default {}", arguments.options.listed));
  constexpr const char* kGroup = "Geometry";
  AddPoolSize(command, arguments.made.pool_size,
              "The size with which the pool was made, if its superblocks are lost; default the file's size")
      ->group(kGroup);
  AddShards(command, arguments.made.shards, "one");
  AddGeometry(command, arguments.made.region_size, arguments.made.segment_size, arguments.made.index_entries);
  AddSize(command, "--grow-to", arguments.made.grow_to,
          "The --grow-to with which the pool was made, if its superblocks are lost")
      ->group(kGroup);
  command.get_option("--shards")->group(kGroup);
}

int SalvagePool(const char* program, const std::string& path, SalvageArguments& arguments, bool json) {
  if (arguments.file == "-" && arguments.unnamed_file == "-") {
    return Fail(program, "the dump and --unnamed cannot both go to stdout; give a file for one of them", kExitUsage);
  }
  std::error_code none;
  for (const std::string& file : {arguments.file, arguments.unnamed_file}) {
    if (!std::filesystem::equivalent(file, path, none)) continue;
    return Fail(program, fmt::format("{} is the pool: give another file for the dump", file), kExitUsage);
  }
  const auto place_of = [&none](const std::string& file) { return std::filesystem::weakly_canonical(file, none); };
  if (!arguments.unnamed_file.empty() && place_of(arguments.file) == place_of(arguments.unnamed_file)) {
    return Fail(program, "the dump and --unnamed are the same file; give two files", kExitUsage);
  }
  for (const char* name : {"--size", "--shards", "--region-size", "--segment-size", "--index-entries", "--grow-to"}) {
    if (arguments.command->count(name) > 0) arguments.options.made = arguments.made;
  }
  if (arguments.options.made && arguments.options.made->shards == 0) arguments.options.made->shards = 1;
  const auto pool = inspect::ReadOnlyPool::Open(path);
  if (!pool.ok()) return Fail(program, pool.status().ToString(), kExitFailure);

  Target to(arguments.file);
  std::optional<Target> unnamed;
  if (!arguments.unnamed_file.empty()) unnamed.emplace(arguments.unnamed_file);
  for (Target* target : {&to, unnamed ? &*unnamed : nullptr}) {
    if (target == nullptr) continue;
    if (const auto status = target->Begin(); !status.ok()) return Fail(program, status.ToString(), kExitFailure);
  }
  const auto take = [&](const SalvagedValue& value) { return (unnamed && !value.named ? *unnamed : to).Add(value); };
  const auto report = inspect::Salvage((*pool)->bytes(), arguments.options, take);
  if (!report.ok()) return Fail(program, Describe("pool " + path, report.status().message()), kExitFailure);
  Status ended = to.End(report->damaged);
  if (ended.ok() && unnamed) ended = unnamed->End(0);
  if (!ended.ok()) return Fail(program, ended.ToString(), kExitFailure);

  const std::string text = json ? Json(path, arguments, *report) : Text(path, arguments, *report);
  if (arguments.file == "-" || arguments.unnamed_file == "-") {
    fmt::print(stderr, "{}", text);
  } else if (const int failed = Print(program, text); failed != 0) {
    return failed;
  }
  return report->complete() ? 0 : kExitDamage;
}

}  // namespace erda::tools
