// A program under test: started with its output captured, always reaped.
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

// How a program ended.
struct Ended {
  int code = -1;  // the exit code, or 128 plus the signal's number
  std::string out;
  std::string err;
};

enum class Rights {
  kOwn,       // those of the test
  kAsAnyone,  // the rights of files bind, even if the test is root
};

class Process {
 public:
  // command[0] is the program's path. The program finds `input` on its stdin.
  explicit Process(std::vector<std::string> command, std::string_view input = "", Rights rights = Rights::kOwn);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills it if it still runs

  void Signal(int signal) const;
  bool Running();
  // Until it ended by itself. After `limit` it is killed, and the test fails.
  Ended Wait(std::chrono::seconds limit = std::chrono::seconds(60));

  // What it wrote so far.
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  // The processor time that it took so far.
  [[nodiscard]] std::chrono::milliseconds cpu_time() const;

 private:
  UniqueFd out_;
  UniqueFd err_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

// Until `holds` or for `limit`; what `holds` said last.
bool WaitUntil(const std::function<bool()>& holds, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace erda
