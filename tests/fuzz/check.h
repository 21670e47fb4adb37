// A promise of Erda that the fuzzers look at.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace erda::fuzz {

// Ends the program if it does not hold.
inline void Check(bool holds, const char* what, const std::string& detail = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s: %s\n", what, detail.c_str());
  std::abort();
}

}  // namespace erda::fuzz
