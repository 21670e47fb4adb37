// erda-pool: makes, shows, checks, grows, backs up, restores and salvages pools.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "erda/status.h"
#include "format/geometry.h"
#include "inspect/inspection.h"
#include "inspect/read_only_pool.h"
#include "server/pool/formatted_pool.h"
#include "server/pool/pool_opening.h"
#include "tools/erda-pool/backup.h"
#include "tools/erda-pool/plan.h"
#include "tools/erda-pool/salvage.h"
#include "tools/shared/command_line.h"
#include "tools/shared/geometry_options.h"
#include "tools/shared/journal_option.h"
#include "tools/shared/output.h"

namespace {

using erda::Status;
using erda::server::FormattedPool;
using erda::tools::Fail;
using erda::tools::kExitFailure;
using erda::tools::kExitUsage;

constexpr const char* kProgram = "erda-pool";
constexpr const char* kFooter = R"(
A pool is a file or a DAX device, /dev/daxX.Y. No server may have it open, but for backup.
A size is a number of bytes, or a number with K, M, G or T, such as 64M or 1.5G. These units are powers of two.

Exit codes: 0 done, and the pool is sound (also if it needs recovery: a server recovers it when it opens it),
            1 failure, 2 bad usage, 3 there is damage (with salvage: something could not be read).

Examples: erda-pool plan --records 1000000 --key-size 24 --value-size 1K
          erda-pool create /var/lib/erda/pool --size 8G --shards 2
          erda-pool check /var/lib/erda/pool
          erda-pool salvage /var/lib/erda/pool /tmp/salvaged.dump
          erda-pool backup /srv/erda.pool --journal /srv/erda.journal --to /backup/erda.base --archive /backup/archive
          erda-pool restore --base /backup/erda.base --archive /backup/archive --to /srv/new.pool
            --journal /srv/new.journal --until 2026-11-28T12:00:00Z)";

struct Arguments {
  std::string pool;
  erda::format::GeometryWish wish;
  bool json = false;
  bool no_values = false;
  bool populate = false;
  std::string journal;
  uint64_t journal_size = 0;
  bool journal_on_tmpfs = false;
  erda::inspect::Options options;
  erda::tools::SalvageArguments salvage;
  erda::tools::PlanArguments plan;
  erda::tools::BackupArguments backup;
  erda::tools::RestoreArguments restore;
};

int FailWith(const Status& status) {
  const bool usage = status.code() == erda::Code::kInvalidArgument;
  return Fail(kProgram, status.ToString(), usage ? kExitUsage : kExitFailure);
}

int FailToRead(const Arguments& arguments, const Status& status) {
  return Fail(kProgram, fmt::format("pool {}: {}", arguments.pool, status.message()), kExitFailure);
}

// Prints the frame of a pool that was closed just before.
int PrintFrame(const Arguments& arguments) {
  auto pool = erda::inspect::ReadOnlyPool::Open(arguments.pool);
  if (!pool.ok()) return Fail(kProgram, pool.status().ToString(), kExitFailure);
  const auto report = erda::inspect::InspectFrame((*pool)->bytes());
  if (!report.ok()) return FailToRead(arguments, report.status());
  return erda::tools::Print(kProgram, arguments.json ? erda::tools::FrameJson(arguments.pool, *report)
                                                     : erda::tools::FrameText(arguments.pool, *report));
}

int Create(const Arguments& arguments) {
  if (arguments.pool == "dram:")
    return Fail(kProgram, "dram: cannot be created: the pool would end with this command; name a file or a DAX device",
                kExitUsage);
  if (arguments.wish.pool_size == 0)
    return Fail(kProgram, "--size 0 is too small for a pool; erda-pool plan says how large one must be", kExitUsage);
  {
    const erda::nvm::PoolOptions options{
        .path = arguments.pool, .size = arguments.wish.pool_size, .populate = arguments.populate};
    const Status made =
        arguments.journal.empty()
            ? FormattedPool::Make(options, arguments.wish).status()
            : erda::server::MakeJournaledPool(options, arguments.wish, arguments.journal, arguments.journal_size,
                                              {.in_memory = arguments.journal_on_tmpfs});
    if (!made.ok()) return FailWith(made);
  }
  return PrintFrame(arguments);
}

int Check(const Arguments& arguments) {
  auto pool = erda::inspect::ReadOnlyPool::Open(arguments.pool);
  if (!pool.ok()) return Fail(kProgram, pool.status().ToString(), kExitFailure);
  const auto report = erda::inspect::InspectPool((*pool)->bytes(), arguments.options);
  if (!report.ok()) return FailToRead(arguments, report.status());
  const bool verify = arguments.options.verify;
  const int failed =
      erda::tools::Print(kProgram, arguments.json ? erda::tools::VerdictJson(arguments.pool, *report, verify)
                                                  : erda::tools::VerdictText(arguments.pool, *report, verify));
  if (failed != 0) return failed;
  return report->damage_count == 0 ? 0 : erda::tools::kExitDamage;
}

int Resize(const Arguments& arguments) {
  {
    // So that a pool that does not exist, or is in use, is refused with the same words as by info.
    const auto there = erda::inspect::ReadOnlyPool::Open(arguments.pool);
    if (!there.ok()) return Fail(kProgram, there.status().ToString(), kExitFailure);
  }
  {
    const erda::nvm::PoolOptions options{arguments.pool, 0, std::chrono::nanoseconds(0)};
    auto pool = FormattedPool::Open(options, {.shards = 0}, true);
    if (!pool.ok()) return Fail(kProgram, pool.status().ToString(), kExitFailure);
    if (const auto grown = (*pool)->Grow(arguments.wish.pool_size); !grown.ok()) {
      return FailWith({grown.code(), erda::tools::Describe("pool " + arguments.pool, grown.message())});
    }
  }
  return PrintFrame(arguments);
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("POOL", arguments.pool, "A file or /dev/daxX.Y")->required()->type_name("");
  command->add_flag("--json", arguments.json, "Print one JSON object");
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Makes, looks at, checks, grows, backs up, restores and salvages pools.", kProgram);
  app.footer(kFooter);
  app.require_subcommand(1);

  CLI::App* create = AddCommand(
      app, "create",
      "Make a pool, and print its geometry. It refuses a file that exists, and a device that is not blank", arguments);
  erda::tools::AddPoolSize(*create, arguments.wish.pool_size,
                           "The pool's size; for a DAX device at most the device's size")
      ->required();
  arguments.wish.shards = 0;
  erda::tools::AddShards(*create, arguments.wish.shards, "one");
  erda::tools::AddGeometry(*create, arguments.wish.region_size, arguments.wish.segment_size,
                           arguments.wish.index_entries);
  erda::tools::AddGrowTo(*create, arguments.wish.grow_to);
  create->add_flag(
      "--populate", arguments.populate,
      "Make all pages of the file in memory, and write zeroes to its blocks. The pool must fit into the memory");
  erda::tools::AddJournalFile(*create, arguments.journal, arguments.journal_size,
                              "Also make a journal for the pool, so that it survives a power cut. Servers need both "
                              "files. The text ,size= gives its size; default 1G");
  erda::tools::AddJournalOnTmpfs(*create, arguments.journal_on_tmpfs);

  const CLI::App* info = AddCommand(
      app, "info", "Print a pool's geometry, and whether it was closed cleanly. It reads only the superblocks",
      arguments);

  CLI::App* check = AddCommand(app, "check", "Read all of a pool, and name the damage in it", arguments);
  check->add_flag("--no-values", arguments.no_values, "Read headers, keys and the index, and not the values");
  erda::tools::AddNumber<size_t>(*check, "--list", arguments.options.damage_listed, 0, 1'000'000'000,
                                 fmt::format("List at most N damaged places, and only count the others; default {}",
                                             arguments.options.damage_listed));

  CLI::App* resize = AddCommand(app, "resize", "Make a pool larger, in place, and print its new geometry", arguments);
  erda::tools::AddPoolSize(*resize, arguments.wish.pool_size,
                           "The new size, larger than the pool's size; for a DAX device at most the device's size")
      ->required();

  CLI::App* plan =
      app.add_subcommand("plan", "Say how large a pool must be for a number of records, and how to make it");
  erda::tools::AddPlanOptions(*plan, arguments.plan);
  plan->add_flag("--json", arguments.json, "Print one JSON object");

  CLI::App* salvage =
      AddCommand(app, "salvage",
                 "Write the readable values of a pool that does not open to a dump, and name the others", arguments);
  erda::tools::AddSalvageOptions(*salvage, arguments.salvage);

  const CLI::App* backup = erda::tools::AddBackup(app, arguments.backup);
  const CLI::App* restore = erda::tools::AddRestore(app, arguments.restore);

  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  if (backup->parsed()) return erda::tools::BackUpPool(kProgram, arguments.backup);
  if (restore->parsed()) return erda::tools::RestorePool(kProgram, arguments.restore);
  if (plan->parsed()) return erda::tools::PrintPlan(kProgram, arguments.plan, arguments.json);
  if (salvage->parsed()) return erda::tools::SalvagePool(kProgram, arguments.pool, arguments.salvage, arguments.json);
  arguments.options.verify = !arguments.no_values;
  if (create->parsed()) return Create(arguments);
  if (resize->parsed()) return Resize(arguments);
  return info->parsed() ? PrintFrame(arguments) : Check(arguments);
}
