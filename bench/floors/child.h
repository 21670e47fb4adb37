// Programs that the benchmark starts, with pipes to their stdin and stdout. It starts them by posix_spawn, so that a
// fork does not make registered memory copy-on-write.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::floors {

class Child {
 public:
  // Starts a program. If command[0] has no slash, looks for it in PATH. Returns kInvalidArgument if the program does
  // not exist.
  static Result<std::unique_ptr<Child>> Start(const std::vector<std::string>& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // Kills the program if nothing has waited for it.

  // Returns the next line of its stdout, without its end. Returns nothing if the program has closed its stdout.
  std::optional<std::string> ReadLine();
  // Closes its stdin, reads its stdout to the end, and waits. Returns the rest of its output and its exit code. Codes
  // from 128 on are 128 plus the signal that ended it.
  struct Ended {
    int code = 0;
    std::string out;
  };
  Ended Wait();

 private:
  Child(pid_t pid, UniqueFd to, UniqueFd from) : pid_(pid), to_(std::move(to)), from_(std::move(from)) {}
  bool ReadMore();

  pid_t pid_;  // 0: already waited for.
  UniqueFd to_;
  UniqueFd from_;
  std::string read_;
};

}  // namespace erda::floors
