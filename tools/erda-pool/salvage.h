// erda-pool salvage: copies the values of a pool that does not open into a dump (docs/salvage.md).
#pragma once

#include <memory>
#include <string>

#include "format/geometry.h"
#include "inspect/salvage.h"

namespace CLI {
class App;
}

namespace erda::tools {

struct SalvageArguments {
  std::string file;
  std::string unnamed_file;
  format::GeometryWish made;
  inspect::SalvageOptions options;
  CLI::App* command = nullptr;
};
void AddSalvageOptions(CLI::App& command, SalvageArguments& arguments);
// Returns the exit code.
int SalvagePool(const char* program, const std::string& pool, SalvageArguments& arguments, bool json);

}  // namespace erda::tools
