// erda-pool backup and restore: a base copy of a pool with a journal, and the pool as it was at some time
// (docs/operations.md, "Backup").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace erda::tools {

struct BackupArguments {
  std::string pool;
  std::string journal;
  std::string to;
  std::string archive;
  bool json = false;
};
CLI::App* AddBackup(CLI::App& app, BackupArguments& arguments);
// Returns the exit code.
int BackUpPool(const char* program, const BackupArguments& arguments);

struct RestoreArguments {
  std::string base;
  std::string archive;
  std::string to;
  std::string journal;
  uint64_t journal_size = 0;
  bool journal_on_tmpfs = false;
  std::string until;
  bool json = false;
};
CLI::App* AddRestore(CLI::App& app, RestoreArguments& arguments);
// Returns the exit code.
int RestorePool(const char* program, const RestoreArguments& arguments);

// Returns the Unix time in microseconds of a time in UTC, such as 2026-11-28T12:00:00.5Z, or of a number of seconds
// since 1970, such as 1764331200.5. Returns nothing if the text is neither.
std::optional<uint64_t> ParseMoment(const std::string& text);

}  // namespace erda::tools
