#include "tools/erda-cli/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/erda-cli/command.h"

namespace erda::cli {

namespace {

using ScreenClock = std::chrono::steady_clock;

volatile std::sig_atomic_t g_stopped = 0;
volatile std::sig_atomic_t g_resized = 0;

constexpr std::string_view kOpen = "\x1b[?1049h\x1b[?25l";  // Another screen, without a cursor.
constexpr std::string_view kClose = "\x1b[?25h\x1b[?1049l";

void Note(int signal) {
  if (signal == SIGWINCH) {
    g_resized = 1;
  } else {
    g_stopped = 1;
  }
}

}  // namespace

Screen::Screen() : is_terminal_(::isatty(STDOUT_FILENO) == 1) {
  g_stopped = 0;
  g_resized = 0;
  sigset_t blocked;
  sigemptyset(&blocked);
  struct sigaction note {};
  note.sa_handler = Note;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaddset(&blocked, kSignals[i]);
    ::sigaction(kSignals[i], &note, &actions_[i]);
  }
  // The signals are delivered only in WaitUntil, which misses none.
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask_);
  if (!is_terminal_) return;
  if (::tcgetattr(STDIN_FILENO, &modes_) == 0) {
    termios keys = modes_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // A shell after a Ctrl-Z would get the screen without a cursor.
    has_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
  }
  Print(kOpen);
}

Screen::~Screen() {
  if (is_terminal_) Print(kClose);
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &actions_[i], nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

int Screen::Show(std::vector<std::string> lines) {
  lines_ = std::move(lines);
  if (is_terminal_) return Draw();
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return Print(text + "\n");
}

int Screen::Draw() const {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  const size_t rows = known ? size.ws_row : 24;
  const size_t columns = known ? size.ws_col : 80;
  std::string text = "\x1b[H";
  for (size_t i = 0; i < std::min(rows, lines_.size()); ++i) {
    text += (i == 0 ? "" : "\n") + lines_[i].substr(0, columns) + "\x1b[K";
  }
  return Print(text + "\x1b[J");
}

bool Screen::WaitUntil(ScreenClock::time_point end) {
  while (g_stopped == 0) {
    const auto left = std::max(end - ScreenClock::now(), ScreenClock::duration(0));
    const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec time{.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
    pollfd keys{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    const int ready = ::ppoll(&keys, 1, &time, &mask_);
    if (ready == 0) return true;
    if (g_resized != 0) {
      g_resized = 0;
      if (is_terminal_ && Draw() != 0) return false;
    }
    if (ready < 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return false;
  }
  return false;
}

}  // namespace erda::cli
