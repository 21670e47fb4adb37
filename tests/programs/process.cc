#include "programs/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

namespace erda {

namespace {

// An unnamed file. Unlike with a pipe, a program never waits for its reader.
UniqueFd MemoryFile(std::string_view content = "") {
  UniqueFd fd(memfd_create("captured", MFD_CLOEXEC));
  EXPECT_TRUE(fd);
  EXPECT_EQ(write(fd.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  EXPECT_EQ(lseek(fd.get(), 0, SEEK_SET), 0);
  return fd;
}

std::string ReadAll(const UniqueFd& fd) {
  std::string all;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t size = pread(fd.get(), part.data(), part.size(), static_cast<off_t>(all.size()));
    if (size <= 0) return all;
    all.append(part.data(), static_cast<size_t>(size));
  }
}

// Runs in the child, where only system calls are safe.
[[noreturn]] void Become(char* const* command, int in, int out, int err, Rights rights) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)signal(SIGINT, SIG_DFL);  // A shell ignores it for what it starts in the background, and children inherit that.
  if (rights == Rights::kAsAnyone) {
    // Root without these capabilities has only an owner's rights. Other users never had them: then this fails, and is
    // not needed.
    prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
    prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
  }
  if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(126);
  execv(command[0], command);
  _exit(127);
}

}  // namespace

Process::Process(std::vector<std::string> command, std::string_view input, Rights rights)
    : out_(MemoryFile()), err_(MemoryFile()) {
  const UniqueFd in = MemoryFile(input);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) Become(arguments.data(), in.get(), out_.get(), err_.get(), rights);
  EXPECT_GT(pid_, 0);
}

Process::~Process() {
  if (!Running()) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) const {
  EXPECT_FALSE(code_) << "it ended before; it wrote: " << out() << err();
  EXPECT_EQ(code_ ? 0 : kill(pid_, signal), 0);
}

bool Process::Running() {
  if (code_ || pid_ < 0) return false;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return true;
  EXPECT_EQ(ended, pid_);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

Ended Process::Wait(std::chrono::seconds limit) {
  if (!WaitUntil([this] { return !Running(); }, limit)) {
    ADD_FAILURE() << "the program did not end in " << limit.count() << " s; it wrote: " << out() << err();
    Signal(SIGKILL);
    WaitUntil([this] { return !Running(); });
  }
  return {code_.value_or(-1), out(), err()};
}

std::string Process::out() const { return ReadAll(out_); }

std::string Process::err() const { return ReadAll(err_); }

std::chrono::milliseconds Process::cpu_time() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string line;
  std::getline(file, line);
  // After the name in parentheses come the fields from the third on. User and system time are the 14th and 15th.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  return std::chrono::milliseconds((user + system) * 1000 / sysconf(_SC_CLK_TCK));
}

bool WaitUntil(const std::function<bool()>& holds, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace erda
