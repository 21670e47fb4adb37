// The output of erda-inspect and erda-pool: the frame of a pool (superblocks and geometry), all its contents, or the
// verdict.
#pragma once

#include <string>

#include "inspect/report.h"

namespace erda::tools {

inline constexpr int kExitDamage = 3;

std::string FrameText(const std::string& pool, const inspect::PoolReport& report);
std::string FrameJson(const std::string& pool, const inspect::PoolReport& report);

// verify: whether the values were read, too.
std::string FullText(const std::string& pool, const inspect::PoolReport& report, bool verify);
std::string FullJson(const std::string& pool, const inspect::PoolReport& report, bool verify);

std::string VerdictText(const std::string& pool, const inspect::PoolReport& report, bool verify);
std::string VerdictJson(const std::string& pool, const inspect::PoolReport& report, bool verify);

// Prints on stdout. Returns the exit code.
int Print(const char* program, const std::string& text);

}  // namespace erda::tools
