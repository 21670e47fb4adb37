// A program for one store. It is a part of both.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "bench/floors/settings.h"
#include "bench/kv/run.h"
#include "bench/kv/store.h"
#include "tools/shared/command_line.h"

namespace {

constexpr const char* kFooter = R"(
Four logs make puts durable, as in the paper on PMRAccess. SyncAccess and GroupAccess are on the disk. PMEMAccess and
PMRAccess are in a front, which a thread empties to the disk. The bytes of --nvm and --region are lost.

Exit codes: 0 done, 1 an operation failed, 2 bad usage.)";

}  // namespace

int main(int argc, char** argv) {
  using erda::tools::AddNumber;
  erda::kv::Settings settings;
  CLI::App app(fmt::format("Compares the logs of PMRAccess in front of {}.", erda::kv::kStoreName),
               fmt::format("kv-{}", erda::kv::kStoreName));
  app.footer(kFooter);
  erda::floors::AddOwnServer(app, settings.fabric, settings.address);
  app.add_option("--folder", settings.folder, "A folder on the disk")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  app.add_option("--nvm", settings.nvm, "dram:, /dev/daxX.Y or a file; default dram:")->type_name("PATH");
  app.add_option("--region", settings.region, "dram:, or pmr: and a PCI resource, or as --nvm; default dram:")
      ->type_name("PATH");
  erda::tools::AddSize(app, "--front-size", settings.front_bytes, "The bytes of --nvm and --region; default 8M");
  AddNumber<uint64_t>(app, "--clients", settings.clients, 1, 64, "Clients at once; default 1");
  AddNumber<uint64_t>(app, "--records", settings.records, 1, 1'000'000'000, "Records of YCSB; default 100000");
  AddNumber<uint64_t>(app, "--milliseconds", settings.milliseconds, 1, 600'000, "Of each figure; default 1000");
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  if (settings.front_bytes < settings.clients * 4096) {
    return erda::tools::Fail(app.get_name(), "--front-size: each client needs 4096 bytes", erda::tools::kExitUsage);
  }
  const auto rows = erda::kv::Run(settings);
  if (!rows.ok()) return erda::tools::Fail(app.get_name(), rows.status().ToString(), erda::tools::kExitFailure);
  fmt::print("{}", erda::kv::ToTable(settings, *rows));
  return 0;
}
