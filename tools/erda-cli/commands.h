// The commands of erda-cli, with their files. Each adds its options to its subcommand, and runs by Session::command.
// The table is in tools/erda-cli/erda-cli.cc.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/erda-cli/command.h"

namespace erda::cli {

// In values.cc.
void AddGet(CLI::App& sub, Session& session);
void AddPut(CLI::App& sub, Session& session);
void AddDel(CLI::App& sub, Session& session);
void AddMget(CLI::App& sub, Session& session);
void AddIncr(CLI::App& sub, Session& session);

// In scan.cc.
void AddScan(CLI::App& sub, Session& session);
void AddKeys(CLI::App& sub, Session& session);

// In backup.cc.
void AddDump(CLI::App& sub, Session& session);
void AddLoad(CLI::App& sub, Session& session);

// In state.cc.
void AddStats(CLI::App& sub, Session& session);
void AddClean(CLI::App& sub, Session& session);
void AddPing(CLI::App& sub, Session& session);

// In top.cc.
void AddTop(CLI::App& sub, Session& session);

}  // namespace erda::cli
