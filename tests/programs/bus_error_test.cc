// A page vanishes under several threads at once. The process reports it once, whole, and ends by the signal.
#include "tools/erda-server/bus_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "base/unique_fd.h"

namespace erda::tools {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kPage = 4096;

// Runs in a child: all threads touch the page after the end of the file.
[[noreturn]] void TouchWhatIsGone(const std::string& path, int err) {
  ::dup2(err, STDERR_FILENO);
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  void* const at = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (!file || at == MAP_FAILED) ::_exit(1);
  TellBusErrors("a-program", "");
  std::atomic<size_t> ready{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < kThreads) {
      }
      *static_cast<volatile char*>(at) = 'x';
    });
  }
  for (std::thread& thread : threads) thread.join();
  ::_exit(2);
}

TEST(BusErrorNoSanitizer, SeveralThreadsReportABusErrorOnce) {
  const TemporaryFolder folder;
  const std::string path = (folder / "file").string();
  const std::string line = "a-program: byte 0 of " + path + " cannot be had any more";
  for (int round = 0; round < 100; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) TouchWhatIsGone(path, to.get());
    to = UniqueFd();
    std::string said;
    std::array<char, 4096> bytes{};
    for (ssize_t n = 0; (n = ::read(from.get(), bytes.data(), bytes.size())) > 0;) {
      said.append(bytes.data(), static_cast<size_t>(n));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
    ASSERT_EQ(said.rfind(line), 0U) << "round " << round << ": '" << said << "'";
  }
}

}  // namespace
}  // namespace erda::tools
