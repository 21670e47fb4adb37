#include "tools/erda-pool/backup.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "journal/archive_folder.h"
#include "journal/base_copy.h"
#include "journal/restore.h"
#include "tools/shared/command_line.h"
#include "tools/shared/journal_option.h"
#include "tools/shared/output.h"

namespace erda::tools {

namespace {

constexpr uint64_t kMicros = 1'000'000;
constexpr uint64_t kSecondsMax = uint64_t{1} << 36;  // More than two thousand years.

int FailWith(const char* program, const Status& status) {
  const bool usage = status.code() == Code::kInvalidArgument || status.code() == Code::kConflict;
  return Fail(program, status.ToString(), usage ? kExitUsage : kExitFailure);
}

std::string MomentText(uint64_t micros) {
  const auto time = static_cast<std::time_t>(micros / kMicros);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(time), micros % kMicros);
}

// Returns the microseconds of ".5", or of nothing.
std::optional<uint64_t> ParseFraction(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() != '.' || text.size() < 2 || text.size() > 7) return std::nullopt;
  std::string digits(text.substr(1));
  digits.resize(6, '0');
  uint64_t micros = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), micros);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return micros;
}

std::optional<uint64_t> Together(uint64_t seconds, std::string_view fraction) {
  const auto micros = ParseFraction(fraction);
  if (!micros || seconds > kSecondsMax) return std::nullopt;
  return seconds * kMicros + *micros;
}

// Returns the place up to which the archive has the shard's stream, by its last file.
Result<journal::Place> ArchivedPlace(const journal::ArchiveFolder& folder, const journal::RingIdentity& identity) {
  if (folder.FirstPlaces(identity.shard).empty()) return journal::Place{0};
  const auto last = folder.OpenLast(identity);
  if (!last.ok()) return last.status();
  return last->header().end;
}

}  // namespace

std::optional<uint64_t> ParseMoment(const std::string& text) {
  std::tm time{};
  if (const char* const rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time); rest != nullptr) {
    const std::string_view fraction(rest);
    const std::time_t seconds = ::timegm(&time);
    if (!fraction.ends_with('Z') || seconds < 0) return std::nullopt;
    return Together(static_cast<uint64_t>(seconds), fraction.substr(0, fraction.size() - 1));
  }
  uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc()) return std::nullopt;
  return Together(seconds, std::string_view(end, text.data() + text.size()));
}

CLI::App* AddBackup(CLI::App& app, BackupArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "backup",
      "Make a base copy of a pool with a journal, while its server runs or not. It refuses a file that exists");
  command->add_option("POOL", arguments.pool, "The pool: a file")->required()->type_name("");
  command->add_option("--journal", arguments.journal, "The pool's journal")->required()->type_name("FILE");
  command->add_option("--to", arguments.to, "The base copy to make")->required()->type_name("COPY");
  command
      ->add_option("--archive", arguments.archive,
                   "The folder of the pool's archive: say how much of what the copy needs is there already")
      ->type_name("FOLDER");
  command->add_flag("--json", arguments.json, "Print one JSON object");
  return command;
}

int BackUpPool(const char* program, const BackupArguments& arguments) {
  std::optional<journal::ArchiveFolder> folder;
  if (!arguments.archive.empty()) {
    auto opened = journal::ArchiveFolder::Open(arguments.archive);
    if (!opened.ok()) return FailWith(program, opened.status());
  }
  const auto made = journal::MakeBaseCopy(arguments.pool, arguments.journal, arguments.to);
  if (!made.ok()) return FailWith(program, made.status());
  if (!arguments.archive.empty()) {  // As it is now, after the copy.
    auto opened = journal::ArchiveFolder::Open(arguments.archive);
    if (!opened.ok()) return FailWith(program, opened.status());
    folder.emplace(*std::move(opened));
  }
  const journal::BaseHeader& header = made->header;
  std::string text = fmt::format("{}: a base copy of {}, {} bytes\n  {:<10} {}\n", arguments.to, arguments.pool,
                                 header.header_bytes + header.pool_size, "ended", MomentText(header.ended_us));
  nlohmann::ordered_json json = {{"base", arguments.to}, {"pool", arguments.pool}, {"ended_us", header.ended_us}};
  for (uint32_t shard = 0; shard < header.shards; ++shard) {
    const auto [from, end] = made->ends[shard];
    text += fmt::format("  {:<10} needs the archive from place {} to {}", fmt::format("shard {}", shard), from, end);
    nlohmann::ordered_json one = {{"shard", shard}, {"from", from}, {"to", end}};
    if (folder) {
      const auto place = ArchivedPlace(*folder, {header.uuid, header.secret, shard});
      if (!place.ok()) return FailWith(program, place.status());
      one["archived"] = *place;
      text += *place >= end ? ", which is there" : fmt::format(", which has {} so far", *place);
    }
    json["shards"].push_back(one);
    text += '\n';
  }
  return Print(program, arguments.json ? json.dump(2) + "\n" : text);
}

CLI::App* AddRestore(CLI::App& app, RestoreArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "restore", "Make a new pool and a new journal of a base copy and an archive. It refuses files that exist");
  command->add_option("--base", arguments.base, "A base copy, which backup has made")->required()->type_name("COPY");
  command->add_option("--archive", arguments.archive, "The archive's folder")->required()->type_name("FOLDER");
  command->add_option("--to", arguments.to, "The pool to make")->required()->type_name("POOL");
  AddJournalFile(*command, arguments.journal, arguments.journal_size,
                 "The journal to make for the pool. The text ,size= gives its size; default 1G");
  command->get_option("--journal")->required();
  AddJournalOnTmpfs(*command, arguments.journal_on_tmpfs);
  const auto check = [](const std::string& text) {
    if (ParseMoment(text)) return std::string();
    return fmt::format("'{}' is not a time: give it in UTC, such as 2026-11-28T12:00:00Z, or in seconds since 1970",
                       text);
  };
  command
      ->add_option("--until", arguments.until,
                   "The pool as it was at this time, in UTC, such as 2026-11-28T12:00:00Z, or in seconds since 1970; "
                   "default all that the archive has")
      ->check(CLI::Validator(check, "", "time"))
      ->type_name("TIME");
  command->add_flag("--json", arguments.json, "Print one JSON object");
  return command;
}

int RestorePool(const char* program, const RestoreArguments& arguments) {
  journal::RestoreOptions options{.base = arguments.base,
                                  .archive = arguments.archive,
                                  .pool = arguments.to,
                                  .journal = arguments.journal,
                                  .disk_in_memory = arguments.journal_on_tmpfs};
  if (arguments.journal_size != 0) options.journal_size = arguments.journal_size;
  if (!arguments.until.empty()) options.until_us = *ParseMoment(arguments.until);
  const auto restored = journal::RestorePool(options);
  if (!restored.ok()) return FailWith(program, restored.status());
  std::string text = fmt::format("pool {}: restored, with journal {}\n", arguments.to, arguments.journal);
  nlohmann::ordered_json json = {{"pool", arguments.to}, {"journal", arguments.journal}};
  for (uint32_t shard = 0; shard < restored->shards.size(); ++shard) {
    const auto& [place, time_us, is_cut] = restored->shards[shard];
    text += fmt::format("  {:<10} up to place {}", fmt::format("shard {}", shard), place);
    if (time_us != 0) text += fmt::format(", of {}", MomentText(time_us));
    const bool may_lack = !is_cut && !arguments.until.empty();
    text += may_lack ? ": the archive has nothing later, so it may lack puts before the time\n" : "\n";
    json["shards"].push_back({{"shard", shard}, {"place", place}, {"time_us", time_us}, {"cut", is_cut}});
  }
  return Print(program, arguments.json ? json.dump(2) + "\n" : text);
}

}  // namespace erda::tools
