// The commands scan and keys of erda-cli. Each Add adds a command's options to its subcommand, and has it run by
// Session::command. The main thread calls them.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/erda-cli/command.h"

namespace erda::cli {

void AddScan(CLI::App& sub, Session& session);
void AddKeys(CLI::App& sub, Session& session);

}  // namespace erda::cli
