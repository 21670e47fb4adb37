// erda-bench: how far the engine is from what the fabric can do.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "bench/floors/measure.h"
#include "bench/floors/report.h"
#include "bench/floors/server_process.h"
#include "bench/floors/settings.h"
#include "tools/command_line.h"

namespace {

constexpr const char* kProgram = "erda-bench";
constexpr const char* kFooter = R"(
floors starts a server of its own, and measures the fabric's raw operations beside gets, puts and deletes. A pool file
that does not exist is made for it and removed afterwards; an existing pool or a device keeps the benchmark's keys, which
begin with erda-bench.

Exit codes: 0 measured, 1 an operation failed or a ratio is above --limit, 2 bad usage.

Example: erda-bench floors --value-bytes 1024 --json floors.json)";

int Fail(std::string message, int exit_code = erda::tools::kExitFailure) {
  return erda::tools::Fail(kProgram, std::move(message), exit_code);
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
  if (!report.ok()) {
    const bool usage = report.status().code() == erda::Code::kInvalidArgument;
    return Fail(report.status().ToString(), usage ? erda::tools::kExitUsage : erda::tools::kExitFailure);
  }
  fmt::print("{}", ToTable(settings, *report));
  if (!settings.json_path.empty()) {
    const auto status = erda::floors::WriteFileAtomically(settings.json_path, ToJson(settings, *report).dump(2) + "\n");
    if (!status.ok()) return Fail(status.ToString());
  }
  const double worst = report->ratios().worst();
  if (settings.limit > 0 && worst > settings.limit) {
    return Fail(fmt::format("a ratio of {:.2f} is above {}", worst, settings.limit));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  erda::floors::Settings settings;
  erda::floors::ServeSettings serve;
  CLI::App app("Measures how far the engine is from what the fabric can do.", kProgram);
  app.footer(kFooter);
  app.require_subcommand(1);
  const CLI::App* floors = AddFloors(app, settings);
  AddServe(app, serve);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  return floors->parsed() ? Floors(settings) : Serve(serve);
}
