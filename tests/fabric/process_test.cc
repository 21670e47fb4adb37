// Conformance: a peer whose process dies, for the fabrics whose ends can be in different processes.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "fabric/fixture.h"

// A server that is a child of fork starts a thread, which the thread sanitizer refuses unless it is told otherwise.
extern "C" const char* __tsan_default_options();
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace erda::fabric {
namespace {

constexpr std::chrono::milliseconds kShortly(10);

// A process that runs `body`, until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(1);
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

class ProcessTest : public FabricTest {
 protected:
  // In the child: a client of its own, which connects, sends as much as it may, and then only lives.
  static void BeClient(const std::string& address) {
    auto fabric = OpenFabric(address);
    auto memory = SharedMemory::Create("erda-test-child", 4096);
    if (!fabric.ok() || !memory.ok()) return;
    auto region = (*fabric)->Register(memory->view(), Access::kRemoteReadWrite);
    auto queue = (*fabric)->CreateQueue();
    if (!region.ok() || !queue.ok()) return;
    Region* const offer[] = {region->get()};
    ChannelOptions options;
    options.queue = queue->get();
    options.offer = offer;
    auto channel = (*fabric)->Connect(address, options);
    if (!channel.ok()) return;
    WorkRequest send;
    send.kind = OpKind::kSend;
    send.local = memory->bytes().first(100);
    while ((*channel)->error().ok()) {
      Completion completions[8];
      (*queue)->Poll(completions);
      if (!(*channel)->connected() || !Post(**channel, send).ok()) std::this_thread::sleep_for(kShortly);
    }
  }

  // In the child: a server of its own, which accepts everyone and answers nothing.
  static void BeServer(const std::string& address) {
    auto fabric = OpenFabric(address);
    auto memory = SharedMemory::Create("erda-test-child", kMemoryBytes);
    if (!fabric.ok() || !memory.ok()) return;
    auto region = (*fabric)->Register(memory->view(), Access::kRemoteReadWrite);
    auto queue = (*fabric)->CreateQueue();
    auto listener = (*fabric)->Listen(address);
    if (!region.ok() || !queue.ok() || !listener.ok()) return;
    Region* const offer[] = {region->get()};
    ChannelOptions options;
    options.queue = queue->get();
    options.offer = offer;
    std::vector<std::unique_ptr<Channel>> channels;
    for (;;) {
      if (const auto incoming = (*listener)->Poll()) {
        auto channel = incoming->Accept(options);
        if (channel.ok()) channels.push_back(std::move(*channel));
      }
      Completion completions[8];
      if ((*queue)->Poll(completions) == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  // Connects to a server that may still be starting.
  std::unique_ptr<Channel> ConnectTo(const std::string& address) {
    Region* const offer[] = {client_.region.get()};
    std::unique_ptr<Channel> channel;
    for (int tries = 0; tries < 1000 && channel == nullptr; ++tries) {
      auto asking = client_.fabric->Connect(address, Offer(client_, offer));
      if (asking.ok()) {
        channel = std::move(*asking);
      } else {
        std::this_thread::sleep_for(kShortly);
      }
    }
    EXPECT_TRUE(PumpUntil([&] { return channel != nullptr && channel->connected(); }));
    return channel;
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, ProcessTest, testing::ValuesIn(RealWorlds()), KindName);

TEST_P(ProcessTest, TheDeathOfAClientClosesItsChannel) {
  for (int round = 0; round < 3; ++round) {
    Child child([&] { BeClient(listener_->address()); });
    const auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    Region* const offer[] = {server_.region.get()};
    auto channel = incoming->Accept(Offer(server_, offer));
    ASSERT_TRUE(channel.ok());
    ASSERT_TRUE(PumpUntil(server_, OpKind::kReceive, 200));
    child.Kill();
    ASSERT_TRUE(PumpUntil(server_, OpKind::kClosed));
    Settle();
    EXPECT_EQ(server_.events.back().kind, OpKind::kClosed);
    EXPECT_EQ((*channel)->error().code(), Code::kUnavailable);
    EXPECT_EQ(Post(**channel, Send(server_, 0, 1)).code(), Code::kUnavailable);
    server_.events.clear();
  }
  Connect();
  EXPECT_TRUE(client_.channel->connected()) << "the next client is served";
}

TEST_P(ProcessTest, AClientThatDiesBeforeTheAnswerIsNoPeer) {
  Child child([&] { BeClient(listener_->address()); });
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  child.Kill();
  auto channel = incoming->Accept(Offer(server_, {}));
  if (channel.ok()) {
    EXPECT_TRUE(PumpUntil(server_, OpKind::kClosed));
  } else {
    EXPECT_EQ(channel.status().code(), Code::kUnavailable);
  }
}

TEST_P(ProcessTest, TheDeathOfTheServerClosesTheChannelAndFlushes) {
  const std::string address = world_->NewAddress();
  Child child([&] { BeServer(address); });
  const auto channel = ConnectTo(address);
  ASSERT_TRUE(channel && channel->connected());
  ASSERT_TRUE(Post(*channel, Read(client_, 0, 100, 0, 1)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  child.Kill();
  client_.events.clear();
  // The end that lives may post until it knows; all of it completes, one way or the other.
  uint64_t posted = 0;
  while (posted < 1000 && Post(*channel, Read(client_, 0, 100, 0, posted)).ok()) ++posted;
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  Settle();
  ASSERT_EQ(client_.events.size(), posted + 1);
  for (uint64_t id = 0; id < posted; ++id) {
    EXPECT_EQ(client_.events[id].id, id);
    EXPECT_TRUE(client_.events[id].code == Code::kOk || client_.events[id].code == Code::kUnavailable);
  }
  EXPECT_EQ(client_.events.back().kind, OpKind::kClosed);
  EXPECT_EQ(channel->error().code(), Code::kUnavailable);
}

TEST_P(ProcessTest, TheAddressOfADeadServerIsListenedAtAgain) {
  const std::string address = world_->NewAddress();
  {
    Child child([&] { BeServer(address); });
    ASSERT_TRUE(ConnectTo(address));
  }
  EXPECT_FALSE(client_.fabric->Connect(address, Offer(client_, {})).ok()) << "nobody listens now";
  const auto listener = server_.fabric->Listen(address);
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  EXPECT_TRUE(client_.fabric->Connect(address, Offer(client_, {})).ok());
}

}  // namespace
}  // namespace erda::fabric
