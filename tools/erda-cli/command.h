// Shared by the commands of erda-cli: the server that they speak to, exit codes, output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/shared/client_options.h"
#include "tools/shared/command_line.h"

namespace erda::cli {

inline constexpr const char* kProgram = "erda-cli";
inline constexpr int kExitNotFound = 1;
inline constexpr int kExitOther = 5;
inline constexpr int kExitDenied = 7;

// The server of a command line, and the command to run. `client` is set when the command runs.
struct Session : tools::ClientChoice {
  std::function<int(Session&)> command;  // Set by parsing. Returns the exit code.
  std::unique_ptr<Client> client;
};

[[nodiscard]] int ExitCode(Code code);

// These print the failure on stderr in one line, and return the exit code.
int FailWith(const Session& session, const Status& status);
int FailWith(const Session& session, std::string_view key, const Status& status);  // names the key, if it is damaged
int FailHere(const Status& status);  // a failure of this program: the message alone, without the server
int FailHere(std::string message);   // with kExitOther

int Finish(const Session& session, const Status& status);

// Writes all bytes to stdout. Returns 0, or the exit code of a failure.
int Print(std::string_view bytes);

// Makes `sub` run command(session, options), and returns these options, to which the command line is bound. They may
// have a Check(), which throws a CLI::ParseError if arguments do not go together.
template <class Options>
Options& Bind(CLI::App& sub, Session& session, int (*command)(Session&, const Options&)) {
  const auto options = std::make_shared<Options>();
  sub.callback([&session, options, command] {
    if constexpr (requires { options->Check(); }) options->Check();
    session.command = [options, command](Session& on) { return command(on, *options); };
  });
  return *options;
}

}  // namespace erda::cli
