// Without memory for the handler that notices forks, the library makes no object that a fork would damage unnoticed.
#include "base/birthplace.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/temporary_folder.h"
#include "erda/client.h"
#include "erda/server.h"

extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* object) noexcept;

namespace erda {
namespace {

bool atfork_fails = false;

bool Forked(const Birthplace& birthplace) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(birthplace.forked() ? 1 : 0);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

// Runs in a separate process, which has no handler yet.
int WithoutTheHandler() {
  atfork_fails = true;
  const TemporaryFolder folder;
  const std::string address = "shm:" + (folder / "socket").string();
  const auto open = [&] { return Server::Open({.pool = "dram:", .pool_size = 64 << 20, .listen = {address}}); };
  if (open().status().code() != Code::kResourceExhausted) return 2;
  if (Client::Connect(address).status().code() != Code::kResourceExhausted) return 3;
  if (Forked(Birthplace())) return 4;
  atfork_fails = false;
  if (!Forked(Birthplace())) return 5;
  return open().ok() ? 0 : 6;
}

TEST(BirthplaceNoSanitizerDeathTest, NothingIsMadeIfTheForkHandlerCannotBeInstalled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(WithoutTheHandler()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace erda

// Replaces libc's function for the whole program.
extern "C" int pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  return erda::atfork_fails ? ENOMEM : __register_atfork(prepare, parent, child, nullptr);
}
