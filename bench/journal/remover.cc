#include "bench/journal/remover.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>

namespace erda::journal_bench {

// If the system has no descriptor or process for it, an interrupted benchmark leaves its folders.
Remover::Remover(const std::vector<std::string>& folders) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  const UniqueFd waits(pipe[0]);
  end_ = UniqueFd(pipe[1]);
  pid_ = ::fork();
  if (pid_ != 0) return;
  end_ = UniqueFd();
  // A terminal sends these to all processes of the benchmark.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  char none = 0;
  while (::read(waits.get(), &none, 1) < 0 && errno == EINTR) {
  }
  for (const std::string& folder : folders) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  ::_exit(0);
}

Remover::~Remover() {
  if (pid_ <= 0) return;
  end_ = UniqueFd();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace erda::journal_bench
