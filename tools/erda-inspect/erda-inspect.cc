// erda-inspect: shows the contents of a pool, without a server, and without changing a byte of it.
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
The program changes nothing in the pool. No server may have the pool open.

Exit codes: 0 the pool is sound (also if it needs recovery: a server recovers it when it opens it),
            1 the pool cannot be read, or the file is not a pool, 2 bad usage, 3 there is damage.

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
  CLI::App app("Shows the contents of a pool that no server has open.", kProgram);
  app.footer(kFooter);
  app.add_option("POOL", arguments.pool, "A file or /dev/daxX.Y")->required()->type_name("");
  app.add_flag("--verify", arguments.options.verify, "Also read and check the values of all entries");
  app.add_flag("--json", arguments.json, "Print everything as one JSON object");
  erda::tools::AddNumber<size_t>(app, "--list", arguments.options.damage_listed, 0, 1'000'000'000,
                                 fmt::format("List at most N damaged places, and only count the others; default {}",
                                             arguments.options.damage_listed));
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  return Inspect(arguments);
}
