// The verbs fabric where the conformance suite does not go.
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "lab/fabric_fixture.h"

namespace erda {
namespace {

using fabric::Channel;
using fabric::OpKind;

TEST_F(FabricLab, WhoIsNotAnsweredGivesUp) {
  const auto channel = Ask();
  ASSERT_NE(channel, nullptr);
  // Nobody polls the listener.
  EXPECT_TRUE(WaitUntil([&] {
    client_.Poll();
    return CountOf(client_, channel.get(), OpKind::kClosed) > 0;
  }));
  EXPECT_EQ(channel->error().code(), Code::kTimeout) << channel->error().ToString();
  EXPECT_EQ(client_.events.back().code, Code::kTimeout);

  ClientOptions options;
  options.timeout = std::chrono::seconds(30);  // the fabric gives up sooner
  const auto client = Client::Connect(Address(), options);
  EXPECT_EQ(client.status().code(), Code::kTimeout) << client.status().ToString();
  EXPECT_NE(client.status().message().find(Address()), std::string_view::npos) << client.status().ToString();
}

// More clients than the shared receive queue can grow for, each with all the messages that it may have under way.
TEST_F(FabricLab, NoMessageIsLostWhenTheReceiverIsNotReady) {
  constexpr size_t kReceives = 16384;  // of a shared receive queue, at most
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
  // As many get through as there are receives.
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
