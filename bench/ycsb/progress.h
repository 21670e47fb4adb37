// A progress bar on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace erda::bench {

// "load [##########----------]  50%  1234567 ops/s, 3 s left"
[[nodiscard]] std::string ProgressLine(std::string_view label, uint64_t done, uint64_t total,
                                       std::chrono::duration<double> elapsed);

// Draws over one line, and wipes it at the end.
class Progress {
 public:
  Progress(std::string label, uint64_t total, bool visible);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  void Update(uint64_t done);

  // Somebody may be looking: stderr is a terminal.
  static bool HasTerminal();

 private:
  std::string label_;
  uint64_t total_;
  bool visible_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace erda::bench
