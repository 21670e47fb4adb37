// A program under test. Its output is captured, and it is always reaped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace erda {

// The end of a program.
struct Ended {
  int code = -1;  // The exit code, or 128 plus the signal's number.
  std::string out;
  std::string err;
};

enum class Rights {
  kOwn,       // The rights of the test.
  kAsAnyone,  // The rights of files bind, even if the test is root.
};

class Process {
 public:
  // command[0] is the program's path. The program finds `input` on its stdin.
  explicit Process(std::vector<std::string> command, std::string_view input = "", Rights rights = Rights::kOwn);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // Kills it if it still runs.

  void Signal(int signal) const;
  bool Running();
  // Waits until it ends by itself. After `limit` kills it, and fails the test.
  Ended Wait(std::chrono::seconds limit = std::chrono::seconds(60));

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The output so far.
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  // The processor time so far.
  [[nodiscard]] std::chrono::milliseconds cpu_time() const;

 private:
  UniqueFd out_;
  UniqueFd err_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

// Waits until `holds` returns true, but at most for `limit`. Returns the last result of `holds`.
bool WaitUntil(const std::function<bool()>& holds, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace erda
