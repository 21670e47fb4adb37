// The verbs fabric in cases that the conformance suite does not cover.
#include <linux/capability.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "lab/fabric_fixture.h"

namespace erda {
namespace {

using fabric::Channel;
using fabric::Incoming;
using fabric::OpKind;

// Runs the function in a thread that can lock no memory. The limit is 0 bytes, and the thread does not have the right
// to ignore the limit. The caller's thread keeps its rights: a thread that changes them cannot use the devices that it
// opened before.
void WithoutLockedMemory(const std::function<void()>& run) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &none), 0);
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {};
    ASSERT_EQ(::syscall(SYS_capget, &header, rights), 0);
    rights[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    ASSERT_EQ(::syscall(SYS_capset, &header, rights), 0);
    run();
  }).join();
  EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

// A host name that this machine can look up as long as this object lives.
class HostName {
 public:
  HostName(const std::string& name, const std::string& address) {
    std::ifstream file(kHosts);
    before_.assign(std::istreambuf_iterator<char>(file), {});
    std::ofstream(kHosts, std::ios::app) << address << ' ' << name << '\n';
  }
  HostName(const HostName&) = delete;
  HostName& operator=(const HostName&) = delete;
  ~HostName() { std::ofstream(kHosts, std::ios::trunc) << before_; }

 private:
  static constexpr const char* kHosts = "/etc/hosts";
  std::string before_;
};

class ConnectingLab : public FabricLab {
 protected:
  // Waits for the next peer that asks at the listener.
  std::unique_ptr<Incoming> NextIncoming() {
    std::unique_ptr<Incoming> incoming;
    EXPECT_TRUE(WaitUntil([&] {
      client_.Poll();
      return (incoming = listener_->Poll()) != nullptr;
    })) << "nobody asked";
    return incoming;
  }
  testing::AssertionResult Closes(fabric::End& end, const Channel& channel) {
    const bool closed = WaitUntil([&] {
      end.Poll();
      return CountOf(end, &channel, OpKind::kClosed) > 0;
    });
    return closed ? testing::AssertionSuccess() : testing::AssertionFailure() << "the channel goes on";
  }
};

TEST_F(ConnectingLab, RefusedPeerHearsTheReason) {
  const auto asking = Ask();
  ASSERT_NE(asking, nullptr);
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  Status failed;
  WithoutLockedMemory([&] { failed = incoming->Accept({server_.queue.get(), {}, {}}).status(); });
  ASSERT_EQ(failed.code(), Code::kResourceExhausted) << failed.ToString();
  const std::string why = "no memory for you";
  incoming->Reject(AsBytes(why));
  EXPECT_TRUE(Closes(client_, *asking));
  EXPECT_EQ(asking->error().code(), Code::kUnavailable) << asking->error().ToString();
  EXPECT_EQ(AsString(asking->peer_data()), why);
  EXPECT_NE(Connect(), nullptr) << "and the next one is accepted";
}

// The asking end goes after the answer has arrived, and before it takes the answer. The accepting end's kernel reports
// a refusal then.
TEST_F(ConnectingLab, ClientThatLeavesBeforeTheLastStepClosesTheChannel) {
  auto asking = Ask();
  ASSERT_NE(asking, nullptr);
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  const auto accepted = incoming->Accept({server_.queue.get(), {}, {}});
  ASSERT_TRUE(accepted.ok()) << accepted.status().ToString();
  pollfd answer{client_.queue->descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&answer, 1, 60'000), 1) << "no answer came";
  asking.reset();
  EXPECT_TRUE(Closes(server_, **accepted));
  EXPECT_EQ((*accepted)->error().code(), Code::kUnavailable) << (*accepted)->error().ToString();
}

TEST_F(ConnectingLab, AHostIsLookedUpOnce) {
  const std::string address = "verbs://erda-was-here:7700";
  std::shared_ptr<fabric::Fabric> fabric;
  {
    const HostName name("erda-was-here", Lab("SERVER"));
    auto opened = fabric::OpenFabric(address, fabric::Role::kConnect);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    fabric = *std::move(opened);
  }
  EXPECT_FALSE(fabric::OpenFabric(address, fabric::Role::kConnect).ok()) << "the name is still known";
  const auto queue = fabric->CreateQueue();
  ASSERT_TRUE(queue.ok()) << queue.status().ToString();
  const auto asking = fabric->Connect(address, {queue->get(), {}, {}});
  ASSERT_TRUE(asking.ok()) << "somebody was asked: " << asking.status().ToString();
  EXPECT_TRUE(PumpUntil([&] {
    std::array<fabric::Completion, 4> completions;
    (void)(*queue)->Poll(completions);
    return (*asking)->connected();
  })) << (*asking)->error().ToString();
}

TEST_F(FabricLab, UnansweredPeerGivesUp) {
  const auto channel = Ask();
  ASSERT_NE(channel, nullptr);
  // The test does not poll the listener, so no answer comes.
  EXPECT_TRUE(WaitUntil([&] {
    client_.Poll();
    return CountOf(client_, channel.get(), OpKind::kClosed) > 0;
  }));
  EXPECT_EQ(channel->error().code(), Code::kTimeout) << channel->error().ToString();
  EXPECT_EQ(client_.events.back().code, Code::kTimeout);

  ClientOptions options;
  options.timeout = std::chrono::seconds(30);  // The fabric gives up sooner.
  const auto client = Client::Connect(Address(), options);
  EXPECT_EQ(client.status().code(), Code::kTimeout) << client.status().ToString();
  EXPECT_NE(client.status().message().find(Address()), std::string_view::npos) << client.status().ToString();
}

// There are more clients than the shared receive queue can grow for. Each client sends as many messages as the depth
// allows.
TEST_F(FabricLab, NoMessageIsLostWhenTheReceiverIsNotReady) {
  constexpr size_t kReceives = 16384;  // The most that a shared receive queue has.
  constexpr size_t kDepth = fabric::kMessageDepthMax;
  constexpr size_t kClients = kReceives / kDepth + 1;
  struct Message {
    uint64_t client;
    uint64_t number;
  };
  std::vector<std::unique_ptr<Channel>> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(Ask(kDepth));
    ASSERT_NE(clients.back(), nullptr);
    ASSERT_TRUE(PumpUntil([&] { return clients.back()->connected(); })) << clients.back()->error().ToString();
  }
  ASSERT_TRUE(PumpUntil([&] { return server_.Count(OpKind::kConnected) == kClients; }));
  server_.events.clear();
  client_.events.clear();

  for (uint64_t client = 0; client < kClients; ++client) {
    std::vector<fabric::WorkRequest> works;
    for (uint64_t number = 0; number < kDepth; ++number) {
      const Message message{client, number};
      const size_t at = (client * kDepth + number) * sizeof(message);
      std::memcpy(client_.bytes(at, sizeof(message)).data(), &message, sizeof(message));
      works.push_back(fabric::Send(client_, at, sizeof(message)));
    }
    const Status posted = clients[client]->Post(works);
    ASSERT_TRUE(posted.ok()) << posted.ToString();
  }
  // As many messages arrive as there are receives.
  EXPECT_TRUE(WaitUntil([&] {
    client_.Poll();
    return client_.events.size() >= kReceives;
  })) << client_.events.size();
  EXPECT_LT(client_.events.size(), kClients * kDepth) << "the others found none";

  EXPECT_TRUE(PumpUntil([&] { return server_.events.size() >= kClients * kDepth; })) << server_.events.size();
  EXPECT_TRUE(PumpUntil([&] { return client_.events.size() >= kClients * kDepth; })) << client_.events.size();
  std::map<const Channel*, Message> next;
  for (const fabric::Event& event : server_.events) {
    ASSERT_EQ(event.kind, OpKind::kReceive);
    ASSERT_EQ(event.data.size(), sizeof(Message));
    const auto message = LoadAs<Message>(std::as_bytes(std::span(event.data)));
    const auto [expected, first] = next.try_emplace(event.channel, Message{message.client, 0});
    ASSERT_EQ(message.client, expected->second.client);
    ASSERT_EQ(message.number, expected->second.number++) << "of client " << message.client;
  }
  EXPECT_EQ(next.size(), kClients);
  for (const fabric::Event& event : client_.events) ASSERT_EQ(event.code, Code::kOk);
  for (const auto& client : clients) EXPECT_TRUE(Works(*client));
}

}  // namespace
}  // namespace erda
