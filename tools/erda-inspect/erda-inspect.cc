// erda-inspect: what is in a pool, without a server, and without changing a byte of it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>

#include "erda/status.h"
#include "inspect/inspection.h"
#include "inspect/read_only_pool.h"
#include "tools/shared/command_line.h"
#include "tools/shared/output.h"

namespace {

using erda::tools::Fail;

constexpr const char* kProgram = "erda-inspect";
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

int Inspect(const Arguments& arguments) {
  auto pool = erda::inspect::ReadOnlyPool::Open(arguments.pool);
  if (!pool.ok()) return Fail(kProgram, pool.status().ToString(), erda::tools::kExitFailure);
  const auto report = erda::inspect::InspectPool((*pool)->bytes(), arguments.options);
  if (!report.ok()) {
    const std::string what = fmt::format("pool {}: {}", arguments.pool, report.status().message());
    return Fail(kProgram, what, erda::tools::kExitFailure);
  }
  const bool verify = arguments.options.verify;
  const int failed =
      erda::tools::Print(kProgram, arguments.json ? erda::tools::FullJson(arguments.pool, *report, verify)
                                                  : erda::tools::FullText(arguments.pool, *report, verify));
  if (failed != 0) return failed;
  return report->damage_count == 0 ? 0 : erda::tools::kExitDamage;
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
