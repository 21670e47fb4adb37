// The place where erda-cli top shows its lines.
#pragma once

#include <termios.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace erda::cli {

// On a terminal it fills a second screen, and restores the first one when it is destroyed. Elsewhere it just prints
// lines. As long as it exists, SIGINT, SIGTERM and SIGHUP only end a wait. There may be only one at a time.
class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  // Shows as many lines as there is room for. Returns 0, or the exit code of a failure.
  int Show(std::vector<std::string> lines);
  // Returns false as soon as the user ends the display, by q or by a signal.
  [[nodiscard]] bool WaitUntil(std::chrono::steady_clock::time_point end);

 private:
  int Draw() const;

  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
  const bool is_terminal_;
  bool has_keys_ = false;
  std::vector<std::string> lines_;
  termios modes_{};
  sigset_t mask_{};
  std::array<struct sigaction, kSignals.size()> actions_{};
};

}  // namespace erda::cli
