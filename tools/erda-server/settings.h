// The settings of erda-server: its command line and its configuration file.
#pragma once

#include <optional>
#include <string>

#include "erda/server.h"
#include "tools/erda-server/log.h"

namespace erda::tools {

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  std::string file;
};

// The settings of the command line and the configuration file.
struct Settings {
  ServerOptions options;
  LogOptions log;
  std::string metrics;
  std::string config;  // The file's name.
  std::string used;    // The settings in use, as a configuration file.
  bool check = false;
};

// Returns the exit code if the program is done. If the configuration file has an error, or a setting is missing, it
// sets `wrong` to the message, and returns kExitUsage.
std::optional<int> ReadSettings(int argc, char** argv, Settings& settings, std::string& wrong);

}  // namespace erda::tools
