// A promise of Erda, which the fuzzers check.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace erda::fuzz {

// Ends the program if the promise does not hold.
inline void Check(bool holds, const char* what, const std::string& detail = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s: %s\n", what, detail.c_str());
  std::abort();
}

}  // namespace erda::fuzz
