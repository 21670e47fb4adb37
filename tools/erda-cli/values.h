// The commands get, put, del, mget and incr of erda-cli. Each Add adds a command's options to its subcommand, and has
// it run by Session::command. The main thread calls them.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/erda-cli/command.h"

namespace erda::cli {

void AddGet(CLI::App& sub, Session& session);
void AddPut(CLI::App& sub, Session& session);
void AddDel(CLI::App& sub, Session& session);
void AddMget(CLI::App& sub, Session& session);
void AddIncr(CLI::App& sub, Session& session);

}  // namespace erda::cli
