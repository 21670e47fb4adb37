// 09: a crash. A child process serves a pool, and puts into it until it is killed. Then this process opens the pool,
// which recovers it. Every put that was acknowledged to the child is there.
//
// Prints:
//   killed in the middle of its puts
//   recovered, nothing damaged
//   all that was acknowledged is there
//   closed cleanly: nothing to recover
#include <erda/client.h>
#include <erda/server.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "example.h"

namespace {

constexpr int kEnough = 2000;

std::string KeyOf(int i) { return "key" + std::to_string(i); }
std::string ValueOf(int i) { return std::string(3000, 'v') + std::to_string(i); }

erda::ServerOptions Options(const example::TemporaryFolder& folder) {
  erda::ServerOptions options;
  options.pool = folder.Path("pool");
  options.pool_size = uint64_t{64} << 20;
  options.listen = {"shm:" + folder.Path("socket")};
  return options;
}

std::unique_ptr<erda::Server> Serve(const example::TemporaryFolder& folder) {
  auto server = example::Check(erda::Server::Open(Options(folder)), "open");
  example::Check(server->Start(), "start");
  return server;
}

// Puts keys until the process is killed. Writes the number of each acknowledged put.
void Put(const example::TemporaryFolder& folder, int acknowledged) {
  const auto server = Serve(folder);
  const auto client = example::Check(erda::Client::Connect(server->addresses().front()), "connect");
  for (int i = 0;; ++i) {
    example::Check(client->Put(KeyOf(i), ValueOf(i)), "put");
    example::Require(::write(acknowledged, &i, sizeof(i)) == sizeof(i), "the parent listens");
  }
}

// Returns the number of puts that were acknowledged before the child was killed.
int KillInTheMiddle(const example::TemporaryFolder& folder) {
  int ends[2];
  example::Require(::pipe(ends) == 0, "there is a pipe");
  const pid_t child = ::fork();  // before this process has a server or a client, since neither survives a fork
  example::Require(child >= 0, "there is a child");
  if (child == 0) {
    try {
      Put(folder, ends[1]);
    } catch (const std::exception& failed) {
      std::fprintf(stderr, "the child: %s\n", failed.what());
    }
    ::_exit(1);
  }
  ::close(ends[1]);
  int last = -1;
  while (last < kEnough && ::read(ends[0], &last, sizeof(last)) == sizeof(last)) {
  }
  ::kill(child, SIGKILL);
  int status = 0;
  example::Require(::waitpid(child, &status, 0) == child && WIFSIGNALED(status), "the child was killed");
  while (::read(ends[0], &last, sizeof(last)) == sizeof(last)) {  // reads the numbers that it wrote before
  }
  ::close(ends[0]);
  return last + 1;
}

}  // namespace

int main() try {
  const example::TemporaryFolder folder;
  const int puts = KillInTheMiddle(folder);
  example::Require(puts > kEnough, "the child had put enough keys");
  std::printf("killed in the middle of its puts\n");

  auto server = Serve(folder);
  const std::optional<erda::RecoveryReport> report = server->recovery();
  example::Require(report.has_value(), "a pool that was not closed cleanly is recovered");
  example::Require(report->damaged == 0, "a crash damages nothing");
  std::printf("recovered, nothing damaged\n");
  std::fprintf(stderr, "%ju objects looked at, %ju unsettled: %ju settled, %ju taken back, %ju dropped\n",
               uintmax_t{report->objects}, uintmax_t{report->unsettled}, uintmax_t{report->settled},
               uintmax_t{report->taken_back}, uintmax_t{report->dropped});

  const auto client = example::Check(erda::Client::Connect(server->addresses().front()), "connect");
  for (int i = 0; i < puts; ++i) {
    example::Require(example::Check(client->Get(KeyOf(i)), "get " + KeyOf(i)) == ValueOf(i), "each key has its value");
  }
  std::printf("all that was acknowledged is there\n");

  example::Check(server->Stop(), "stop");
  server.reset();
  server = Serve(folder);
  example::Require(!server->recovery(), "a pool that was closed cleanly needs no recovery");
  std::printf("closed cleanly: nothing to recover\n");
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}
