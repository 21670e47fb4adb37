// A program's configuration file: TOML, with the names of the program's options as keys. So every option has a key, and
// the checks of a flag hold for its key, too.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace erda::tools {

// Gives options of `app`, which has parsed its flags, the values of the file. Options that were given as flags keep
// their values. Options that are not configurable have no key. Returns the fault and its place: "FILE:LINE: ...".
[[nodiscard]] std::optional<std::string> TakeConfigFile(CLI::App& app, const std::string& path);

// Returns the options as a configuration file, without those that have neither a value nor a default.
[[nodiscard]] std::string AsConfigFile(const CLI::App& app);

}  // namespace erda::tools
