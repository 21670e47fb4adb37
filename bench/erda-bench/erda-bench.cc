// erda-bench: measures how far Erda is from the fabric's limits, and what cleaning and growth cost. It counts the bytes
// that Erda writes to NVM, and checks that nothing gets lost.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "bench/bytes/measure.h"
#include "bench/bytes/report.h"
#include "bench/cleaning/measure.h"
#include "bench/cleaning/report.h"
#include "bench/cleaning/settings.h"
#include "bench/crowd/measure.h"
#include "bench/crowd/report.h"
#include "bench/floors/measure.h"
#include "bench/floors/report.h"
#include "bench/floors/server_process.h"
#include "bench/floors/settings.h"
#include "bench/growth/measure.h"
#include "bench/growth/report.h"
#include "bench/journal/measure.h"
#include "bench/journal/report.h"
#include "bench/paths/measure.h"
#include "bench/paths/report.h"
#include "bench/pmr/measure.h"
#include "bench/pmr/report.h"
#include "bench/shortage/measure.h"
#include "bench/shortage/report.h"
#include "bench/shortage/worker.h"
#include "bench/soak/settings.h"
#include "bench/soak/soak.h"
#include "tools/shared/command_line.h"

namespace {

constexpr const char* kProgram = "erda-bench";
constexpr const char* kFooter = R"(
Each command starts a separate server. If the pool file does not exist, the command makes it, and removes it afterwards;
only soak leaves a pool that you name. An existing pool or a device keeps its contents. After floors it also has the
benchmark's keys, which begin with erda-bench.

The command floors measures the fabric's raw operations beside gets, puts and deletes.

The command paths measures puts on each put path by the size of their values. It first writes through the log. The
server takes requests of 64 KiB, so that large values can be measured on the inline path, too.

The command cleaning measures YCSB A, B and C and updates (zipfian 0.99), one operation at a time. Beside them it puts
other keys, at --rate. The operations run in slices, in two states in turn, with the same pool, live data and load. In
the idle state all dead space was made free before, so the cleaner has no work. In the cleaning state the log is full,
so the cleaner works. The command fails if the cleaner worked in the idle state, or did not in the other. Then it
counts the bytes that the cleaner copies for each byte that it frees, at four shares of live data, under uniform
overwrites. It also measures the shard's processor time for a get. All this takes a minute or two.

The command growth puts new keys, one at a time, and gets other keys between them, until the number of keys has doubled.
It prints how long each took while the index grew, and while it did not.

The command crowd measures puts and gets of one client, while more and more other clients are connected and silent. It
prints each median. Each connection takes a descriptor of the benchmark and one of its server. So the command raises the
limit of open files as far as it may.

The command journal measures puts into a pool with a journal, in a temporary folder in --folder. In turn with them it
measures the disk without Erda: writes of 4 KiB and of 1 MiB, each with a flush. It first writes through the log, which
takes some time. It prints puts of one client and of several, and gets beside them. It counts the bytes that the server
writes to the disk for each byte that is put. And it times a restart after a kill, with the memory and without it.

The command pmr measures four ways to make the bytes of a client persistent at a server. Two are messages: the server
writes to the disk, or copies into the persistent memory region of an NVMe disk. Two are one-sided Writes, into NVM and
into the region. Both ends are threads of this program. The bytes of --nvm and --region are lost.

The command shortage measures one client that puts, while other processes want the same processors. They get values all
the time, or they compute. It prints the updates in a second, the part of the gets that remains, and the processor time
and the sleeps of an update. With --also it measures running servers in turn with its own, such as Redis.

The command soak overwrites a store with several clients, values of 16 to 8000 bytes, and deletes. It fails if the
server refuses a put. It fails if a get finds a value that is not whole, or that is older than the last acknowledged
put. At the end it verifies all values, verifies them again after a restart, and runs erda-inspect.

The command bytes counts the bytes that each create, update and delete writes to NVM. It does so on two of Erda's put
paths, and for the two schemes that Erda is compared with, beside the paper's formulas.

Exit codes: 0 done, 1 an operation failed, a ratio is above --limit, or the cleaner was not in the state that was
            measured, 2 bad usage.

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

// Returns the path, and not the link itself: under a debugger or valgrind the link of a child leads elsewhere.
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
    return Fail(fmt::format("a ratio of {:.2f} is above --limit {}", worst, settings.limit));
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

int Journal(const erda::journal_bench::Settings& settings) {
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::journal_bench::Measure(settings, ThisProgram());
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (settings.json_path.empty()) return 0;
  const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
  return status.ok() ? 0 : Fail(status.ToString());
}

int Pmr(const erda::pmr_bench::Settings& settings) {
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::pmr_bench::Measure(settings);
  if (!report.ok()) return FailWith(report.status());
  fmt::print("{}", ToTable(settings, *report));
  if (settings.json_path.empty()) return 0;
  const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
  return status.ok() ? 0 : Fail(status.ToString());
}

int Shortage(const erda::shortage::Settings& settings) {
  if (const auto error = CheckSettings(settings); !error.empty()) return Fail(error, erda::tools::kExitUsage);
  const auto report = erda::shortage::Measure(settings, ThisProgram());
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
  CLI::App app("Measures Erda beside the fabric, while it cleans and grows, counts NVM bytes, and soaks it.", kProgram);
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
  erda::journal_bench::Settings journal_settings;
  const CLI::App* journal = AddJournal(app, journal_settings);
  erda::pmr_bench::Settings pmr_settings;
  const CLI::App* pmr = AddPmr(app, pmr_settings);
  erda::shortage::Settings shortage_settings;
  const CLI::App* shortage = AddShortage(app, shortage_settings);
  erda::shortage::WorkSettings work;
  const CLI::App* worker = AddWork(app, work);
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
  if (journal->parsed()) return Journal(journal_settings);
  if (pmr->parsed()) return Pmr(pmr_settings);
  if (shortage->parsed()) return Shortage(shortage_settings);
  if (worker->parsed()) return Work(work);
  if (soak->parsed()) return Soak(soak_settings);
  return Serve(serve);
}
