// erda-cli: one operation on a server, from a shell. What the commands do is in tools/cli.
#include <CLI/CLI.hpp>
#include <utility>

#include "erda/client.h"
#include "tools/cli/command.h"
#include "tools/cli/commands.h"
#include "tools/command_line.h"

namespace {

namespace cli = erda::cli;

constexpr const char* kFooter = R"(
Keys and values that begin with a dash go behind --, as in: put -- -key -value

Exit codes: 0 done, 1 not found, 2 bad usage or argument, 3 server unavailable or timeout,
            4 resource exhausted, 6 conflict, 5 anything else.

Examples: erda-cli -a shm:/run/erda.sock put greeting hello
          erda-cli -a shm:/run/erda.sock get greeting
          erda-cli -a shm:/run/erda.sock put photo - < photo.jpg
          erda-cli -a shm:/run/erda.sock get --raw photo > copy.jpg
          erda-cli -a shm:/run/erda.sock put --if-absent lock "$HOSTNAME"
          erda-cli -a shm:/run/erda.sock put --ttl 30000 session 4711
          erda-cli -a shm:/run/erda.sock incr visits
          erda-cli -a shm:/run/erda.sock dump all.dump
          erda-cli -a shm:/run/other.sock load all.dump)";

struct Command {
  const char* name;
  const char* help;
  void (*add)(CLI::App& sub, cli::Session& session);
};
constexpr Command kCommands[] = {
    {"get", "Print the value of a key and a newline", cli::AddGet},
    {"put", "Set the value of a key", cli::AddPut},
    {"del", "Remove a key", cli::AddDel},
    {"incr", "Add to a number of 8 bytes, absent counts as 0, and print the sum", cli::AddIncr},
    {"clean", "Have the server clean its log now, and wait until that is done", cli::AddClean},
    {"keys", "Print all keys, each and a newline, in no order, while all goes on", cli::AddKeys},
    {"dump", "Write all keys, values and deadlines to a file, while all goes on", cli::AddDump},
    {"load", "Put all that a dump holds", cli::AddLoad},
    {"stats", "Print what the server says of itself", cli::AddStats},
};

}  // namespace

int main(int argc, char** argv) {
  cli::Session session;
  CLI::App app("Reads and changes a running server's pool.", cli::kProgram);
  app.footer(kFooter);
  erda::tools::AddClientOptions(app, session.address, session.options);
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help)->fallthrough();
    command.add(*sub, session);
  }
  app.require_subcommand(1, 1);
  if (const auto done = erda::tools::Parse(app, argc, argv)) return *done;

  auto client = erda::Client::Connect(session.address, session.options);
  if (!client.ok()) return cli::FailWith(session, client.status());
  session.client = *std::move(client);
  return session.command(session);
}
