// erda-cli: one operation on a server, from a shell. The other files of this folder have its commands.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "erda/client.h"
#include "tools/erda-cli/backup.h"
#include "tools/erda-cli/command.h"
#include "tools/erda-cli/scan.h"
#include "tools/erda-cli/state.h"
#include "tools/erda-cli/top.h"
#include "tools/erda-cli/values.h"
#include "tools/shared/client_options.h"
#include "tools/shared/command_line.h"

namespace {

namespace cli = erda::cli;

constexpr const char* kExitCodes = R"(
Exit codes: 0 done, 1 not found (at least one of the keys), 2 bad usage or argument,
            3 server unavailable or timeout, 4 resource exhausted, 6 conflict, 7 permission denied,
            5 any other failure, such as a damaged value.
)";
constexpr const char* kFooter = R"(
The command erda-cli COMMAND --help prints the options of a command, and examples. Keys and values hold any bytes. Put
a key or value that begins with a dash after --, as in: put -- -key -value
)";
constexpr const char* kExamples = R"(
Examples: export ERDA_ADDRESS=shm:/run/erda/socket  # instead of -a in each command
          erda-cli put greeting hello
          erda-cli get greeting
          erda-cli put photo --value-file photo.jpg
          erda-cli get photo --out copy.jpg
          erda-cli put --if-absent --ttl 30000 lock "$HOSTNAME"
          erda-cli incr visits
          erda-cli scan --values --limit 10
          erda-cli -a verbs://10.0.0.1:7700 ping)";

struct Command {
  const char* name;
  const char* help;
  void (*add)(CLI::App& sub, cli::Session& session);
  const char* footer;
};
constexpr Command kCommands[] = {
    {"get", "Print the value of a key and a newline", cli::AddGet, R"(
Examples: erda-cli get greeting
          erda-cli get --raw photo > copy.jpg
          erda-cli get photo --out copy.jpg
          erda-cli get --number visits
          erda-cli get --key-hex 00ff)"},
    {"put", "Set the value of a key", cli::AddPut, R"(
Examples: erda-cli put greeting hello
          erda-cli put photo --value-file photo.jpg
          date | erda-cli put now -
          erda-cli put --number visits 41
          erda-cli put --if-absent --ttl 30000 lock "$HOSTNAME"
          erda-cli put -- -key -value)"},
    {"del", "Remove keys", cli::AddDel, R"(
A line on stderr names each absent key. The command deletes the other keys all the same.

Examples: erda-cli del greeting
          erda-cli scan -0 --prefix tmp/ | erda-cli del -0 --file -)"},
    {"mget", "Print some keys and their values", cli::AddMget, R"(
Each key has a line with the key, a tab and the value. A missing key stands alone in its line. In keys and values,
backslash, newline, tab and carriage return are \\, \n, \t and \r, and each other byte that cannot be printed is \xNN.
Keys in the file of --file have no escapes.

Examples: erda-cli mget greeting photo
          erda-cli mget --file keys.txt --json
          erda-cli scan -0 | erda-cli mget -0 --file -
          erda-cli mget --key-hex 00ff)"},
    {"incr", "Add to a number of 8 bytes, and print the sum", cli::AddIncr, R"(
The value is a signed number of 8 bytes, in little-endian order. put --number writes such a number, and get --number
prints it. An absent key counts as 0. The command refuses a value of another size, also a text that is a number, and
says how to put that with --number. It takes a text of 8 bytes, such as 8 digits, as a number, and adds to that: the
server cannot tell the two apart.

Examples: erda-cli incr visits
          erda-cli incr visits 10
          erda-cli incr visits -- -10)"},
    {"scan", "Print all keys, or some, in no order, while clients go on", cli::AddScan, R"(
Each line has a key, or a key, a tab and the value, with the escapes of mget. A program that takes the keys uses
--key-hex or --json. It may use -0 if no key has a NUL.

Examples: erda-cli scan --values
          erda-cli scan --prefix user/ --json
          erda-cli scan --limit 100)"},
    {"keys", "Print all keys without escapes, each with a newline, in no order, while clients go on", cli::AddKeys, R"(
The command scan has more options, and escapes newlines in keys.

Example: erda-cli keys | wc -l)"},
    {"dump", "Write all keys, values and deadlines to a file, while clients go on", cli::AddDump, R"(
The file appears when it is whole. Until then, an older file of that name stays.

Examples: erda-cli dump all.dump
          erda-cli dump - | gzip > all.dump.gz)"},
    {"load", "Put all keys and values of a dump", cli::AddLoad, R"(
Examples: erda-cli load all.dump
          zcat all.dump.gz | erda-cli load --if-absent -)"},
    {"stats", "Print the server's statistics", cli::AddStats, R"(
Example: erda-cli stats --json)"},
    {"top", "Show the server's rates again each second", cli::AddTop, R"(
A screen has the rates and times of the requests of the last second. The first one counts all requests since the
server's start. On a terminal the command fills the screen until q or Ctrl-C. Elsewhere it prints one screen after
another. Gets and scans are one-sided, so the server does not count them.

Examples: erda-cli top
          erda-cli top -n 60 --interval-ms 60000 > hour.txt)"},
    {"clean", "Have the server clean its log now, and wait until that is done", cli::AddClean, R"(
Example: erda-cli clean)"},
    {"ping", "Ask the server for an answer, and print how long it took", cli::AddPing, R"(
The command connects to each shard. Then it times a request, which one shard has to answer, and a get, in which the
server's processor has no part. With a read-only token it times a second connection in place of the request. If an
answer does not come, the command ends with exit code 3.

Examples: erda-cli ping
          erda-cli ping --wait 10s    # waits for a server
          erda-cli ping -n 10)"},
};

// Handles a command line without a command. Returns the exit code.
int PrintCommands() {
  fmt::print(stderr, "erda-cli: a COMMAND is missing: give one of these\n");
  for (const Command& command : kCommands) fmt::print(stderr, "  {:6} {}\n", command.name, command.help);
  fmt::print(stderr,
             "erda-cli COMMAND --help prints the options of a command, and erda-cli --help those of all commands.\n");
  return erda::tools::kExitUsage;
}

// Returns the error of a command line that does not parse since its first word is not a command.
std::string UnknownCommand(const CLI::App& app) {
  if (!app.get_subcommands().empty()) return "";
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with('-')) return fmt::format("there is no command {}; erda-cli --help lists the commands", word);
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  cli::Session session;
  CLI::App app("Reads and changes a running server's pool.", cli::kProgram);
  app.footer(std::string(kFooter) + kExitCodes + kExamples);
  erda::tools::AddClientOptions(app, session);
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help)->fallthrough();
    sub->footer(std::string(kExitCodes) + command.footer);
    command.add(*sub, session);
  }
  app.require_subcommand(0, 1);
  if (const auto done = erda::tools::Parse(app, argc, argv, UnknownCommand)) return *done;
  if (app.get_subcommands().empty()) return PrintCommands();
  if (const auto wrong = erda::tools::TakeClientConfig(app, session)) {
    return erda::tools::Fail(cli::kProgram, *wrong, erda::tools::kExitUsage);
  }

  // A ping asks whether a server is up now.
  const bool asks = app.got_subcommand("ping");
  const auto wait = session.wait.value_or(asks ? std::chrono::milliseconds(0) : erda::tools::kDefaultWait);
  const auto connected = erda::tools::WaitForServer(cli::kProgram, session.address, wait, [&session] {
    auto client = erda::Client::Connect(session.address, session.options);
    if (!client.ok()) return client.status();
    session.client = *std::move(client);
    return erda::Status();
  });
  if (!connected.ok()) return cli::FailWith(session, connected);
  return session.command(session);
}
