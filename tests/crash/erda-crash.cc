// erda-crash kills servers and clients again and again, and reports whether anything was lost. tools/crash-test runs
// it.
#include <CLI/CLI.hpp>
#include <cstdint>

#include "crash/harness.h"
#include "crash/worker.h"
#include "tools/shared/command_line.h"

namespace {

using erda::tools::AddNumber;

void AddRun(CLI::App& app, erda::crash::HarnessSettings& settings) {
  app.add_option("--folder", settings.folder, "The folder for the records of the clients")->required();
  app.add_option("--server", settings.machine.server,
                 "The program erda-server. Without it, a server runs already. Its machine loses its power after each "
                 "line 'the power may be cut now'");
  app.add_flag("--own-power", settings.own_power,
               "Without --server: this machine loses its power after such a line. The same command then runs again "
               "with the same folder, until all rounds are judged");
  app.add_option("-a,--address", settings.machine.address, "shm:/path/to/socket or verbs://host:port")->required();
  app.add_option("--pool", settings.machine.pool,
                 "The pool for the server: a file of 256M, or a DAX device. Its old content is lost");
  CLI::Option* journal =
      app.add_option("--journal", settings.machine.journal,
                     "The file of a journal for the pool, which is a file of 64M then. Its old content is lost");
  CLI::Option* memory =
      app.add_option("--journal-memory", settings.machine.memory,
                     "An empty folder in a tmpfs, for the image of a pool with a journal. Before some restarts the "
                     "harness removes the image, as a reboot does");
  journal->needs(memory);
  memory->needs(journal);
  app.add_option("--journal-front", settings.machine.front,
                 "A file that is the front of the journal. Its old content is lost")
      ->needs(journal);
  app.add_option("--sync", settings.machine.sync, "The server's --sync");
  AddNumber<uint64_t>(app, "--rounds", settings.rounds, 1, 1'000'000'000, "default 20");
  AddNumber<uint64_t>(app, "--minutes", settings.minutes, 0, 1'000'000,
                      "Run rounds for this time, instead of --rounds");
  AddNumber<uint32_t>(app, "--clients", settings.clients, 1, 64, "default 4");
  AddNumber<uint64_t>(app, "--operations", settings.operations, 100, 1'000'000,
                      "About this number in each round; default 10000");
  AddNumber<uint64_t>(app, "--seed", settings.seed, 0, UINT64_MAX, "default 1");
  app.add_flag("--keep", settings.keep, "Keep the records of rounds without a loss, too");
}

void AddWorker(CLI::App& app, erda::crash::WorkerSettings& settings) {
  app.add_option("-a,--address", settings.address)->required();
  app.add_option("--records", settings.records)->required();
  AddNumber<uint32_t>(app, "--number", settings.number, 1, UINT32_MAX, "The number of this client");
  AddNumber<uint32_t>(app, "--place", settings.place, 0, 63, "The place whose keys it has");
  AddNumber<uint32_t>(app, "--clients", settings.clients, 1, 64, "The number of places");
  AddNumber<uint64_t>(app, "--seed", settings.seed, 0, UINT64_MAX, "Decides the operations");
  AddNumber<uint64_t>(app, "--operations", settings.operations, 1, UINT32_MAX, "The most operations");
  app.add_option("--life", settings.life, "The server_id of a server. The client ends when that server is gone");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Kills servers and clients again and again, and says whether anything was lost.", "erda-crash");
  app.footer("\nExit codes: 0 nothing was lost, 1 something was, 2 bad usage, 3 not finished.");
  app.require_subcommand(1);
  erda::crash::HarnessSettings harness;
  erda::crash::WorkerSettings worker;
  CLI::App& run = *app.add_subcommand("run", "Rounds of kills, or of power cuts");
  CLI::App& client = *app.add_subcommand("client", "One client of a round");
  CLI::App& read = *app.add_subcommand("read", "Reads every key once");
  AddRun(run, harness);
  AddWorker(client, worker);
  AddWorker(read, worker);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;
  if (client) return erda::crash::Work(worker);
  if (read) return erda::crash::ReadAll(worker);
  return erda::crash::Run(harness);
}
