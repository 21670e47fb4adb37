#include "bench/floors/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/bytes.h"

namespace erda::floors {

Result<std::unique_ptr<Child>> Child::Start(const std::vector<std::string>& command) {
  int in[2];
  int out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return ErrnoStatus("cannot make a pipe");
  UniqueFd in_read(in[0]);
  UniqueFd in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return ErrnoStatus("cannot make a pipe");
  UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);

  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in_read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out_write.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus("cannot start " + command[0], error);
  return std::unique_ptr<Child>(new Child(pid, std::move(in_write), std::move(out_read)));
}

Child::~Child() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Child::ReadMore() {
  std::array<char, 4096> part{};
  ssize_t size = 0;
  do {
    size = ::read(from_.get(), part.data(), part.size());
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  read_.append(part.data(), static_cast<size_t>(size));
  return true;
}

std::optional<std::string> Child::ReadLine() {
  size_t end = read_.find('\n');
  while (end == std::string::npos) {
    if (!ReadMore()) return std::nullopt;
    end = read_.find('\n');
  }
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

Child::Ended Child::Wait() {
  to_.reset();
  while (ReadMore()) {
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), std::exchange(read_, {})};
}

}  // namespace erda::floors
