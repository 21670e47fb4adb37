// erda-cli: one operation on a server, from a shell. The other files of this folder hold its commands.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "erda/client.h"
#include "tools/erda-cli/command.h"
#include "tools/erda-cli/commands.h"
#include "tools/shared/client_options.h"
#include "tools/shared/command_line.h"

namespace {

namespace cli = erda::cli;

constexpr const char* kExitCodes = R"(
Exit codes: 0 done, 1 not found (of several keys, at least one), 2 bad usage or argument,
            3 server unavailable or timeout, 4 resource exhausted, 6 conflict, 7 permission denied,
            5 anything else, as a damaged value.
)";
constexpr const char* kFooter = R"(
erda-cli COMMAND --help has the options of a command, and examples. Keys and values hold any bytes. Those that begin
with a dash go behind --, as in: put -- -key -value
)";
constexpr const char* kExamples = R"(
Examples: export ERDA_ADDRESS=shm:/run/erda/socket  # instead of -a in each command; so ERDA_TOKEN_FILE
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
An absent key is told on stderr, and does not stop the others.

Examples: erda-cli del greeting
          erda-cli scan -0 --prefix tmp/ | erda-cli del -0 --file -)"},
    {"mget", "Print some keys and their values", cli::AddMget, R"(
A line for each key: the key, a tab, the value; the key alone if it is missing. In both, backslash, newline, tab and
carriage return are \\, \n, \t and \r, and what cannot be printed is \xNN. Keys of --file are taken as they are.

Examples: erda-cli mget greeting photo
          erda-cli mget --file keys.txt --json
          erda-cli scan -0 | erda-cli mget -0 --file -
          erda-cli mget --key-hex 00ff)"},
    {"incr", "Add to a number of 8 bytes, absent counts as 0, and print the sum", cli::AddIncr, R"(
The value is a signed number of 8 bytes, in little-endian order, as put --number writes it and get --number prints it. A
value of another size is refused, also a text that is a number; the error says how to put that with --number. A text of
8 bytes, as 8 digits, is not refused: nobody can tell it from a number, and it is added to as one.

Examples: erda-cli incr visits
          erda-cli incr visits 10
          erda-cli incr visits -- -10)"},
    {"scan", "Print all keys, or some, in no order, while all goes on", cli::AddScan, R"(
A key, or key, tab and value, on each line, written as mget writes them. Where keys hold any bytes, a program takes
them by --key-hex or --json; by -0 if none holds a NUL.

Examples: erda-cli scan --values
          erda-cli scan --prefix user/ --json
          erda-cli scan --limit 100)"},
    {"keys", "Print all keys as they are, each and a newline, in no order, while all goes on", cli::AddKeys, R"(
scan can do more, and writes keys that hold newlines so that they can be told apart.

Example: erda-cli keys | wc -l)"},
    {"dump", "Write all keys, values and deadlines to a file, while all goes on", cli::AddDump, R"(
The file is there when it is whole; until then, what had its name stays.

Examples: erda-cli dump all.dump
          erda-cli dump - | gzip > all.dump.gz)"},
    {"load", "Put all that a dump holds", cli::AddLoad, R"(
Examples: erda-cli load all.dump
          zcat all.dump.gz | erda-cli load --if-absent -)"},
    {"stats", "Print what the server says of itself", cli::AddStats, R"(
Example: erda-cli stats --json)"},
    {"top", "Show what the server does, anew each second", cli::AddTop, R"(
Rates and times of the requests of the last second; at first, counts of all since the server's start. On a terminal it
fills the screen until q or Ctrl-C; elsewhere it prints one screen after another. Gets and scans are one-sided: no
server sees them.

Examples: erda-cli top
          erda-cli top -n 60 --interval-ms 60000 > hour.txt)"},
    {"clean", "Have the server clean its log now, and wait until that is done", cli::AddClean, R"(
Example: erda-cli clean)"},
    {"ping", "Ask the server for an answer, and print how long it took", cli::AddPing, R"(
It connects, which each shard has to answer; then a request, which one shard has to answer, and a get, which the
server's processor has no part in. With a read-only token it connects once more in place of the request. The first time
without an answer ends it, with exit code 3.

Examples: erda-cli ping
          erda-cli ping --wait 10s    # until a server listens
          erda-cli ping -n 10)"},
};

// For a command line without a command. Returns the exit code.
int PrintCommands() {
  fmt::print(stderr, "erda-cli: a COMMAND is missing. The commands are:\n");
  for (const Command& command : kCommands) fmt::print(stderr, "  {:6} {}\n", command.name, command.help);
  fmt::print(stderr, "erda-cli COMMAND --help says more of one, erda-cli --help of the options of all.\n");
  return erda::tools::kExitUsage;
}

// Of a command line that does not parse, since its first word is not a command.
std::string UnknownCommand(const CLI::App& app) {
  if (!app.get_subcommands().empty()) return "";
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with('-')) return fmt::format("there is no command {}; erda-cli --help lists them", word);
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

  // A ping asks whether a server is there now.
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
