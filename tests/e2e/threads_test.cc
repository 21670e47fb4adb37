// The promises of docs/threads.md: the threads that may make each call, and the effects of a fork, a signal and an
// exit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "e2e/fixture.h"

namespace erda {
namespace {

class Threads : public E2eTest {
 protected:
  [[nodiscard]] static std::unique_ptr<Server> Opened(const ServerOptions& options) {
    auto server = Server::Open(options);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    return server.ok() ? *std::move(server) : nullptr;
  }
  // Runs the body on another thread, to its end.
  static void Elsewhere(const std::function<void()>& body) { std::thread(body).join(); }
};

TEST_F(Threads, ClientMayMoveBetweenThreadsFromCallToCall) {
  const auto server = Serve(PoolKind::kDram);
  std::unique_ptr<Client> client;
  Elsewhere([&] { client = Connect(); });
  std::vector<std::string> got;
  std::vector<std::thread::id> told_by;
  for (int i = 0; i < 4; ++i) {
    const std::string key = "key" + std::to_string(i);
    Elsewhere([&] { EXPECT_TRUE(client->Put(key, Bytes(i, 5000)).ok()); });
    Elsewhere([&] {
      EXPECT_TRUE(client
                      ->GetAsync(key,
                                 [&](Result<std::string_view> value) {
                                   got.push_back(value.ok() ? std::string(*value) : value.status().ToString());
                                   told_by.push_back(std::this_thread::get_id());
                                 })
                      .ok());
    });
    EXPECT_TRUE(client->Drain().ok());
    EXPECT_EQ(got.back(), Bytes(i, 5000));
    EXPECT_EQ(told_by.back(), std::this_thread::get_id()) << "the callback is on the thread that waits";
  }
  EXPECT_EQ(client->stats().puts, 4U);
  Elsewhere([&] { client.reset(); });
}

TEST_F(Threads, AnotherThreadMayDestroyABufferDuringAnOperation) {
  const auto server = Serve(PoolKind::kDram);
  const auto client = Connect();
  for (int i = 0; i < 20; ++i) {
    std::optional<Buffer> buffer(*client->MakeBuffer(5000));
    const std::string value = Bytes(i, 5000);
    std::copy_n(reinterpret_cast<const std::byte*>(value.data()), value.size(), buffer->bytes().begin());
    Status put = Status(Code::kInternal);
    ASSERT_TRUE(client->PutAsync("key", *buffer, value.size(), [&](Status status) { put = std::move(status); }).ok());
    std::thread other([&] { buffer.reset(); });
    EXPECT_TRUE(client->Drain().ok());
    other.join();
    EXPECT_TRUE(put.ok()) << put.ToString();
    EXPECT_EQ(*client->Get("key"), value);
  }
}

TEST_F(Threads, AnyThreadMayAskAServerFromStartToStop) {
  ServerOptions options = Options(PoolKind::kFile);
  options.shards = 2;
  const auto server = Opened(options);
  std::atomic<bool> over{false};
  std::vector<std::thread> asking;
  for (int i = 0; i < 3; ++i) {
    asking.emplace_back([&] {
      uint64_t puts = 0;
      uint64_t requests = 0;
      for (bool last = false; !last;) {
        last = over;
        const ServerStats stats = server->stats();
        EXPECT_GE(stats.puts, puts);
        puts = stats.puts;
        EXPECT_EQ(stats.shards, 2U);
        const Activity activity = server->activity();
        EXPECT_FALSE(activity.operations.empty());
        uint64_t now = 0;
        for (const OperationStats& operation : activity.operations) now += operation.count();
        EXPECT_GE(now, requests);
        requests = now;
        EXPECT_EQ(server->addresses().size(), 1U);
        EXPECT_EQ(server->fabrics().size(), 1U);
        EXPECT_EQ(server->durability(), "process-safe");
        EXPECT_FALSE(server->recovery());
      }
      EXPECT_EQ(puts, 100U);
      EXPECT_GE(requests, 100U);
    });
  }
  ASSERT_TRUE(server->Start().ok());
  const auto client = Connect();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(client->Put("key" + std::to_string(i), "value").ok());
  EXPECT_TRUE(server->Stop().ok());
  over = true;
  for (std::thread& thread : asking) thread.join();
}

TEST_F(Threads, ServersOfOneProcessAreIndependent) {
  AtOnce(4, [&](uint32_t number) {
    ServerOptions options = Options(PoolKind::kDram);
    options.listen = {"shm:" + Path("socket" + std::to_string(number))};
    const auto server = Opened(options);
    EXPECT_TRUE(server->Start().ok());
    {
      const auto client = Client::Connect(options.listen[0]);
      ASSERT_TRUE(client.ok()) << client.status().ToString();
      for (int i = 0; i < 50; ++i) EXPECT_TRUE((*client)->Put("key" + std::to_string(i), Bytes(number, 100)).ok());
      EXPECT_EQ(*(*client)->Get("key0"), Bytes(number, 100));
    }
    EXPECT_EQ(server->stats().puts, 50U);
    EXPECT_TRUE(server->Stop().ok());
  });
}

TEST_F(Threads, EventCallbacksRunOnTheServersThreadsAndMayAskIt) {
  std::ofstream(Path("tokens")) << "a-token-that-is-long-enough-to-be-one\n";
  ASSERT_EQ(::chmod(Path("tokens").c_str(), 0600), 0);
  struct Told {
    std::mutex mutex;
    std::set<std::string> threads;
    uint64_t clients = 99;
  } told;
  Server* asked = nullptr;
  ServerOptions options = Options(PoolKind::kDram);
  options.token_file = Path("tokens");
  options.on_event = [&](std::string_view) {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    const std::scoped_lock lock(told.mutex);
    told.threads.insert(name);
    told.clients = asked->stats().clients;
  };
  const auto server = Opened(options);
  asked = server.get();
  ASSERT_TRUE(server->Start().ok());
  ExpectFails(Client::Connect(Address(), How{.token = "not-the-token-that-it-has"}.options()).status(),
              Code::kPermissionDenied, "token");
  EXPECT_TRUE(server->Stop().ok());
  EXPECT_EQ(told.threads, std::set<std::string>({"erda-doorman"}));
  EXPECT_EQ(told.clients, 0U);
}

// Returns the name of each thread of this process, and whether the thread blocks the signal.
std::vector<std::pair<std::string, bool>> ThreadsBlocking(int signal) {
  std::vector<std::pair<std::string, bool>> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string name;
    for (std::string word; status >> word;) {
      if (word == "Name:") status >> name;
      if (word != "SigBlk:") continue;
      uint64_t mask = 0;
      status >> std::hex >> mask >> std::dec;
      threads.emplace_back(name, ((mask >> (signal - 1)) & 1) != 0);
    }
  }
  return threads;
}

TEST_F(Threads, ServerThreadsBlockTheSignalsThatTheirMakerBlocks) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &signals, &before), 0);
  {
    const auto server = Opened(Options(PoolKind::kDram));
    ASSERT_TRUE(server->Start().ok());
    int own = 0;
    for (const auto& [name, blocks] : ThreadsBlocking(SIGUSR1)) {
      if (!name.starts_with("erda-")) continue;
      ++own;
      EXPECT_TRUE(blocks) << name;
    }
    EXPECT_EQ(own, 4) << "beacon, doorman, shard and cleaner";
    kill(getpid(), SIGUSR1);
    int signal = 0;
    EXPECT_EQ(sigwait(&signals, &signal), 0);
    EXPECT_EQ(signal, SIGUSR1);
    EXPECT_TRUE(server->Stop().ok());
    for (const auto& [name, blocks] : ThreadsBlocking(SIGUSR1)) EXPECT_FALSE(name.starts_with("erda-")) << name;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::atomic<uint32_t> alarms{0};

TEST_F(Threads, SignalHandlerDisturbsNoCall) {
  struct sigaction on_alarm {};
  struct sigaction before {};
  on_alarm.sa_handler = [](int) { ++alarms; };  // without SA_RESTART, so that the signal interrupts system calls
  ASSERT_EQ(sigaction(SIGALRM, &on_alarm, &before), 0);
  const itimerval often{{0, 300}, {0, 300}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  {
    ServerOptions options = Options(PoolKind::kDram);
    options.polling = Polling::kSleep;
    const auto server = Opened(options);
    ASSERT_TRUE(server->Start().ok());
    uint32_t seen = 0;
    while (seen < 200) {
      const auto client = Connect({.polling = Polling::kSleep});
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(client->Put("key" + std::to_string(i), Bytes(i, 3000)).ok());
      for (int i = 0; i < 50; ++i) EXPECT_EQ(*client->Get("key" + std::to_string(i)), Bytes(i, 3000));
      EXPECT_TRUE(client->Drain().ok());
      seen = alarms;
    }
    EXPECT_TRUE(server->Stop().ok());
  }
  const itimerval never{};
  EXPECT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  sigaction(SIGALRM, &before, nullptr);
}

// Returns the open descriptors, and whether another program that this process executes would have them.
std::set<std::pair<int, bool>> Descriptors() {
  std::set<std::pair<int, bool>> descriptors;
  for (int fd = 0; fd < 1000; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0) descriptors.emplace(fd, (flags & FD_CLOEXEC) == 0);
  }
  return descriptors;
}

TEST_F(Threads, ExecutedProgramInheritsNoDescriptor) {
  const auto before = Descriptors();
  const auto server = Serve(PoolKind::kFile);
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", Bytes(1, 50'000)).ok());
  const auto after = Descriptors();
  EXPECT_GT(after.size(), before.size() + 5);
  for (const auto& [fd, inherited] : after) {
    EXPECT_TRUE(before.contains({fd, inherited}) || !inherited) << fd;
  }
}

// Runs the body in a child process, and returns the child's exit code. The sanitizers do not see through a fork.
int StatusOfChild(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ForksNoSanitizer : public Threads {};

TEST_F(ForksNoSanitizer, ChildMayHaveASeparateClient) {
  const auto server = Serve(PoolKind::kPowerSafe);  // in a separate process, so that this one has one thread
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "parent").ok());
  const int status = StatusOfChild([&] {
    const auto own = Client::Connect(Address());
    return own.ok() && (*own)->Put("key", "child").ok() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*client->Get("key"), "child");
  EXPECT_TRUE(client->Put("key", Bytes(1, 50'000)).ok());
  EXPECT_EQ(client->stats().reconnects, 0U);
}

TEST_F(ForksNoSanitizer, ChildOfAServerHoldsThePoolUntilItEnds) {
  auto server = Opened(Options(PoolKind::kFile));
  ASSERT_TRUE(server->Start().ok());
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  ASSERT_GT(child, 0);
  ASSERT_TRUE(Connect()->Put("key", "value").ok()) << "the parent goes on";
  EXPECT_TRUE(server->Stop().ok());
  server.reset();
  ExpectFails(Server::Open(Options(PoolKind::kFile)).status(), Code::kUnavailable, "another server has it open");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  server = Opened(Options(PoolKind::kFile));
  EXPECT_FALSE(server->recovery()) << "it was closed cleanly all the same";
}

TEST_F(ForksNoSanitizer, ExitStopsOnlyAServerThatItDestroys) {
  for (const bool destroyed : {true, false}) {
    const int status = StatusOfChild([&] {
      static std::unique_ptr<Server> server;
      static std::unique_ptr<Client> client;
      server = Opened(Options(PoolKind::kFile));
      if (!server->Start().ok()) return 1;
      client = Connect();
      if (!client->Put("key", "value").ok()) return 1;
      if (!destroyed) {
        (void)client.release();
        (void)server.release();
      }
      std::exit(0);
    });
    EXPECT_EQ(status, 0);
    const auto server = Opened(Options(PoolKind::kFile));
    EXPECT_EQ(server->recovery().has_value(), !destroyed);
    ASSERT_TRUE(server->Start().ok());
    EXPECT_EQ(*Connect()->Get("key"), "value");
  }
}

}  // namespace
}  // namespace erda
