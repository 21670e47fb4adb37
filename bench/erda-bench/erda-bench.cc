// erda-bench: how far the engine is from what the fabric can do, what cleaning and growing cost, what is written to
// NVM, and whether anything gets lost.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "bench/bytes/bytes.h"
#include "bench/cleaning/measure.h"
#include "bench/cleaning/report.h"
#include "bench/cleaning/settings.h"
#include "bench/crowd/crowd.h"
#include "bench/floors/measure.h"
#include "bench/floors/report.h"
#include "bench/floors/server_process.h"
#include "bench/floors/settings.h"
#include "bench/growth/growth.h"
#include "bench/paths/paths.h"
#include "bench/soak/settings.h"
#include "bench/soak/soak.h"
#include "tools/shared/command_line.h"

namespace {

constexpr const char* kProgram = "erda-bench";
constexpr const char* kFooter = R"(
Each starts a server of its own. A pool file that does not exist is made for it and removed afterwards, but for soak's;
an existing pool or a device keeps what it has, and with floors the benchmark's keys, which begin with erda-bench.

floors measures the fabric's raw operations beside gets, puts and deletes.

paths measures puts on each path by the size of their values, in a log that was written through before. The server takes
requests of 64 KiB, so that the inline path can be compared beyond the default.

cleaning measures YCSB A, B and C and updates (zipfian 0.99), one operation at a time, and beside them puts of other keys
at --rate, in slices of two states in turn. Both have the same pool, live data and load. Idle: all dead space was made
free before, so that the cleaner is not due. Cleaning: the log is full, so that it is. It is a failure if the cleaner did
nothing in the one, or something in the other. Then there is what it copies for each byte it frees, at four shares of
live data, under uniform overwrites; and the shard's processor time for a get. It takes a minute or two.

growth puts new keys, one at a time, and gets others between them, until there are twice as many, and tells what each took
while the index grew and while it did not.

crowd measures puts and gets of one client while more and more others are connected and silent, and tells each median. It
raises the limit of open files as far as it may: each connection takes a descriptor of the benchmark and one of its server.

soak overwrites a store with several clients, values of 16 to 8000 bytes and deletes. A put that is refused is a failure,
and so is a get that finds anything but a whole value, no older than what was acknowledged before. Then all is verified,
also after a restart, and by erda-inspect.

bytes counts the NVM bytes of each create, update and delete, on both of Erda's put paths and for the two schemes that it
is compared with, beside the paper's formulas.

Exit codes: 0 done, 1 an operation failed, a ratio is above --limit, or the cleaner was not in the state measured;
2 bad usage.

Examples: erda-bench floors --value-bytes 1024 --json floors.json
          erda-bench cleaning --json cleaning.json
          erda-bench soak --pool-size 1G --times 100)";

int Fail(std::string message, int exit_code = erda::tools::kExitFailure) {
  return erda::tools::Fail(kProgram, std::move(message), exit_code);
}

int FailWith(const erda::Status& status) {
  const bool usage = status.code() == erda::Code::kInvalidArgument;
  return Fail(status.ToString(), usage ? erda::tools::kExitUsage : erda::tools::kExitFailure);
}

// The path, and not the link itself: under a debugger or valgrind the link of a child is another one.
std::string ThisProgram() {
  std::error_code failed;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "/proc/self/exe" : path.string();
}

int Floors(const erda::floors::Settings& settings) {
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::floors::Measure(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (!settings.json_path.empty()) {
    const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
    if (!status.ok()) return Fail(status.ToString());
  }
  const double worst = report->ratios(settings).worst();
  if (settings.limit > 0 && worst > settings.limit) {
    return Fail(fmt::format("a ratio of {:.2f} is above {}", worst, settings.limit));
  }
  return 0;
}

int Paths(const erda::paths::Settings& settings) {
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::paths::Measure(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (settings.json_path.empty()) return 0;
  const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
  return status.ok() ? 0 : Fail(status.ToString());
}

int Cleaning(erda::cleaning::Settings& settings) {
  Complete(settings);
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::cleaning::Measure(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (!settings.json_path.empty()) {
    const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
    if (!status.ok()) return Fail(status.ToString());
  }
  if (const auto wrong = WhatIsWrong(*report); !wrong.empty()) return Fail(wrong);
  return 0;
}

int Bytes(const erda::bytes::Settings& settings) {
  const auto report = erda::bytes::Measure(settings);
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(*report));
  if (settings.json_path.empty()) return 0;
  const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
  return status.ok() ? 0 : Fail(status.ToString());
}

int Growth(const erda::growth::Settings& settings) {
  const auto report = erda::growth::Measure(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (settings.json_path.empty()) return 0;
  const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
  return status.ok() ? 0 : Fail(status.ToString());
}

int Crowd(const erda::crowd::Settings& settings) {
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::crowd::Measure(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (settings.json_path.empty()) return 0;
  const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
  return status.ok() ? 0 : Fail(status.ToString());
}

int Soak(const erda::soak::Settings& settings) {
  const auto report = erda::soak::Run(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToText(settings, *report));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  erda::floors::Settings settings;
  erda::floors::ServeSettings serve;
  CLI::App app("Measures the engine beside the fabric and while it cleans, counts NVM bytes, and soaks it.", kProgram);
  app.footer(kFooter);
  app.require_subcommand(1);
  const CLI::App* floors = AddFloors(app, settings);
  erda::paths::Settings paths_settings;
  const CLI::App* paths = AddPaths(app, paths_settings);
  erda::cleaning::Settings cleaning_settings;
  const CLI::App* cleaning = AddCleaning(app, cleaning_settings);
  erda::soak::Settings soak_settings;
  const CLI::App* soak = AddSoak(app, soak_settings);
  erda::growth::Settings growth_settings;
  const CLI::App* growth = AddGrowth(app, growth_settings);
  erda::crowd::Settings crowd_settings;
  const CLI::App* crowd = AddCrowd(app, crowd_settings);
  erda::bytes::Settings bytes_settings;
  const CLI::App* bytes = AddBytes(app, bytes_settings);
  AddServe(app, serve);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  if (floors->parsed()) return Floors(settings);
  if (paths->parsed()) return Paths(paths_settings);
  if (cleaning->parsed()) return Cleaning(cleaning_settings);
  if (bytes->parsed()) return Bytes(bytes_settings);
  if (growth->parsed()) return Growth(growth_settings);
  if (crowd->parsed()) return Crowd(crowd_settings);
  if (soak->parsed()) return Soak(soak_settings);
  return Serve(serve);
}
