// A program's configuration file: TOML, whose keys are the names of the program's options. So no option is without its
// key, and what holds for a flag holds for its key.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace erda::tools {

// Gives options of `app`, which has parsed its flags, the values of the file; those that were given as flags keep
// theirs. Options that are not configurable have no key. Returns what is wrong, and where: "FILE:LINE: ...".
[[nodiscard]] std::optional<std::string> TakeConfigFile(CLI::App& app, const std::string& path);

// What the options are, as a configuration file; options with neither a value nor a default are not in it.
[[nodiscard]] std::string AsConfigFile(const CLI::App& app);

}  // namespace erda::tools
