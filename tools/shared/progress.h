// A progress bar on stderr.
#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace erda::tools {

// Returns a line such as "load [##########----------]  50%  1234567 ops/s, 3 s left".
[[nodiscard]] inline std::string ProgressLine(std::string_view label, uint64_t done, uint64_t total,
                                              std::chrono::duration<double> elapsed, std::string_view unit = "ops") {
  constexpr int kWidth = 30;
  const double part = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(part * kWidth);
  std::string line = fmt::format("{} [{:#>{}}{:->{}}] {:3.0f}%", label, "", filled, "", kWidth - filled, part * 100);
  if (done == 0 || elapsed.count() <= 0) return line;
  const double rate = static_cast<double>(done) / elapsed.count();
  return line + fmt::format("  {:.0f} {}/s, {:.0f} s left", rate, unit, elapsed.count() * (1 - part) / part);
}

// Draws over one line, and wipes it at the end.
class Progress {
 public:
  Progress(std::string label, uint64_t total, bool visible, std::string unit = "ops")
      : label_(std::move(label)), unit_(std::move(unit)), total_(total), visible_(visible) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (visible_) fmt::print(stderr, "{}", kWipeLine);
  }
  void Update(uint64_t done) {
    if (!visible_) return;
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    fmt::print(stderr, "{}{}", kWipeLine, ProgressLine(label_, done, total_, elapsed, unit_));
  }
  // For work of which only the finished part is known.
  void Update(uint64_t done, double part) {
    total_ = static_cast<uint64_t>(static_cast<double>(done) / std::max(part, 1e-9));
    Update(done);
  }

  // Returns true if a person may be looking: stderr is a terminal.
  static bool HasTerminal() { return isatty(STDERR_FILENO) == 1; }

 private:
  static constexpr const char* kWipeLine = "\r\033[K";

  std::string label_;
  std::string unit_;
  uint64_t total_;
  bool visible_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace erda::tools
