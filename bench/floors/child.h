// Programs that the benchmark starts, with pipes to their stdin and stdout. Started by posix_spawn, so that memory
// which an RDMA device knows is not copied on write under it.
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
  // command[0] is looked for in PATH if it has no slash. kInvalidArgument if there is no such program.
  static Result<std::unique_ptr<Child>> Start(const std::vector<std::string>& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills it if it was not waited for

  // The next line of its stdout, without its end; nothing if it closed that.
  std::optional<std::string> ReadLine();
  // Closes its stdin, reads its stdout to the end, and waits: what it wrote since, and its exit code (128 and more: the
  // signal that ended it).
  struct Ended {
    int code = 0;
    std::string out;
  };
  Ended Wait();

 private:
  Child(pid_t pid, UniqueFd to, UniqueFd from) : pid_(pid), to_(std::move(to)), from_(std::move(from)) {}
  bool ReadMore();

  pid_t pid_;  // 0: waited for
  UniqueFd to_;
  UniqueFd from_;
  std::string read_;
};

}  // namespace erda::floors
