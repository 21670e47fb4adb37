#include "bench/ycsb/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace erda::bench {

namespace {

constexpr const char* kWipeLine = "\r\033[K";

}  // namespace

std::string ProgressLine(std::string_view label, uint64_t done, uint64_t total, std::chrono::duration<double> elapsed) {
  constexpr int kWidth = 30;
  const double part = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(part * kWidth);
  std::string line = fmt::format("{} [{:#>{}}{:->{}}] {:3.0f}%", label, "", filled, "", kWidth - filled, part * 100);
  if (done == 0 || elapsed.count() <= 0) return line;
  const double rate = static_cast<double>(done) / elapsed.count();
  return line + fmt::format("  {:.0f} ops/s, {:.0f} s left", rate, elapsed.count() * (1 - part) / part);
}

Progress::Progress(std::string label, uint64_t total, bool visible)
    : label_(std::move(label)), total_(total), visible_(visible) {}

Progress::~Progress() {
  if (visible_) fmt::print(stderr, "{}", kWipeLine);
}

void Progress::Update(uint64_t done) {
  if (!visible_) return;
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  fmt::print(stderr, "{}{}", kWipeLine, ProgressLine(label_, done, total_, elapsed));
}

bool Progress::HasTerminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace erda::bench
