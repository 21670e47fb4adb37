// Removes folders when this process ends, however it ends: also by a signal that it does not catch.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace erda::journal_bench {

// A separate process waits for the end. One thread uses it.
class Remover {
 public:
  // REQUIRES: this process has one thread.
  explicit Remover(const std::vector<std::string>& folders);
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;
  ~Remover();  // Returns when the folders are gone.

 private:
  UniqueFd end_;  // The other process waits until nobody has this open.
  pid_t pid_ = -1;
};

}  // namespace erda::journal_bench
