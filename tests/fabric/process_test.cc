// Conformance: a peer whose process dies, for fabrics whose ends can be in different processes.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "fabric/child.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

class ProcessTest : public FabricTest {
 protected:
  // Connects to a server that may still be starting.
  std::unique_ptr<Channel> ConnectTo(const std::string& address) {
    Region* const offer[] = {client_.region.get()};
    std::unique_ptr<Channel> channel;
    for (int tries = 0; tries < 1000; ++tries) {
      auto asking = client_.fabric->Connect(address, Offer(client_, offer));
      if (asking.ok()) {
        channel = std::move(*asking);
        EXPECT_TRUE(PumpUntil([&] { return !client_.events.empty(); }));
        const bool connected = channel->connected();
        client_.events.clear();  // kConnected or kClosed.
        if (connected) return channel;
        channel.reset();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "nobody listens at " << address;
    return nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, ProcessTest, testing::ValuesIn(RealWorlds()), KindName);

TEST_P(ProcessTest, TheDeathOfAClientClosesItsChannel) {
  for (int round = 0; round < 3; ++round) {
    Child child(Child::kClient, listener_->address());
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
  Child child(Child::kClient, listener_->address());
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
  Child child(Child::kServer, address);
  const auto channel = ConnectTo(address);
  ASSERT_TRUE(channel && channel->connected());
  ASSERT_TRUE(Post(*channel, Read(client_, 0, 100, 0, 1)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  child.Kill();
  client_.events.clear();
  // The living end may post until it knows. All of its operations complete, with or without an error.
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

// A read at once must not return bytes of a dead server, either.
TEST_P(ProcessTest, ReadAtOnceReturnsNothingOfADeadServer) {
  const std::string address = world_->NewAddress();
  Child child(Child::kServer, address);
  const auto channel = ConnectTo(address);
  ASSERT_TRUE(channel && channel->connected());
  child.Kill();
  EXPECT_FALSE(channel->ReadNow(client_.bytes(0, 100), {0, 0}));
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  EXPECT_FALSE(channel->ReadNow(client_.bytes(0, 100), {0, 0}));
}

// Its memory may belong to another server now, as a pool does.
TEST_P(ProcessTest, WritesToADeadServerFail) {
  const std::string address = world_->NewAddress();
  Child child(Child::kServer, address);
  const auto channel = ConnectTo(address);
  ASSERT_TRUE(channel && channel->connected());
  Put(client_.bytes(0, 100), std::string(100, 'x'));
  Put(client_.bytes(4096, 100), std::string(100, 'c'));
  child.Kill();
  // If the Write is executed, the Read returns its bytes, although both report a failure.
  const WorkRequest batch[] = {Unsignaled(Write(client_, 0, 100, 0)), Read(client_, 4096, 100, 0)};
  (void)channel->Post(batch);
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  Settle();
  EXPECT_EQ(client_.text(4096, 100).find('x'), std::string::npos);
}

TEST_P(ProcessTest, TheAddressOfADeadServerIsListenedAtAgain) {
  const std::string address = world_->NewAddress();
  {
    Child child(Child::kServer, address);
    ASSERT_TRUE(ConnectTo(address));
  }
  EXPECT_TRUE(Refused(address)) << "nobody listens now";
  const auto listener = server_.fabric->Listen(address);
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  EXPECT_TRUE(client_.fabric->Connect(address, Offer(client_, {})).ok());
}

}  // namespace
}  // namespace erda::fabric
