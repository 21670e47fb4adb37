// Conformance: connecting, and failing to connect.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

class ConnectTest : public FabricTest {
 protected:
  ChannelOptions Bare(const End& end, std::string_view private_data = {}) const {
    ChannelOptions options = Offer(end, {});
    options.private_data = AsBytes(private_data);
    return options;
  }
  // Connects with options that this side must refuse.
  Status ConnectStatus(const ChannelOptions& options) {
    return client_.fabric->Connect(listener_->address(), options).status();
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, ConnectTest, testing::ValuesIn(AllWorlds()), KindName);

TEST_P(ConnectTest, EachEndGetsThePrivateDataOfTheOther) {
  const std::string asked = Pattern(kConnectDataMax, 1);
  const std::string answered = Pattern(kAcceptDataMax, 2);
  const ChannelPair pair = Connect(Bare(client_, asked), Bare(server_, answered));
  ASSERT_TRUE(pair.client && pair.server);
  EXPECT_EQ(AsString(pair.server->peer_data()), asked);
  EXPECT_EQ(AsString(pair.client->peer_data()), answered);
}

TEST_P(ConnectTest, TheListenerSeesThePrivateDataBeforeItAnswers) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_, "hello"));
  ASSERT_TRUE(asking.ok());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(AsString(incoming->peer_data()), "hello");
}

TEST_P(ConnectTest, PeerOfTheSameUserIsKnownAsSuch) {
  for (const Askers askers : {Askers::kEverybody, Askers::kGroup, Askers::kOwner}) {
    ASSERT_TRUE(listener_->LetAsk(askers).ok());
    auto asking = client_.fabric->Connect(listener_->address(), Bare(client_, "hello"));
    ASSERT_TRUE(asking.ok());
    const auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    const bool knows = server_.fabric->scheme() != "verbs";
    EXPECT_EQ(incoming->peer_user(), knows ? PeerUser::kSame : PeerUser::kUnknown);
  }
}

TEST_P(ConnectTest, MissingPrivateDataArrivesAsNone) {
  const ChannelPair pair = Connect(Bare(client_), Bare(server_));
  ASSERT_TRUE(pair.client && pair.server);
  EXPECT_TRUE(pair.server->peer_data().empty());
  EXPECT_TRUE(pair.client->peer_data().empty());
}

TEST_P(ConnectTest, EachEndSeesTheOfferedRegionsOfTheOtherInOrder) {
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<Region*> offer;
  for (size_t i = 0; i < kOfferedRegionsMax; ++i) {
    regions.push_back(Register(server_, i % 3 == 0 ? Access::kRemoteReadWrite : Access::kRemoteRead));
    offer.push_back(regions.back().get());
  }
  Region* const of_client[] = {client_.region.get()};
  const ChannelPair pair = Connect(Offer(client_, of_client), Offer(server_, offer));
  ASSERT_TRUE(pair.client && pair.server);
  ASSERT_EQ(pair.client->peer_regions().size(), kOfferedRegionsMax);
  for (size_t i = 0; i < kOfferedRegionsMax; ++i) {
    EXPECT_EQ(pair.client->peer_regions()[i].size, kMemoryBytes);
    EXPECT_EQ(pair.client->peer_regions()[i].access, i % 3 == 0 ? Access::kRemoteReadWrite : Access::kRemoteRead);
  }
  ASSERT_EQ(pair.server->peer_regions().size(), 1U);
  EXPECT_EQ(pair.server->peer_regions()[0].access, Access::kRemoteReadWrite);
}

TEST_P(ConnectTest, BothEndsAreConnectedWhenThePeerAccepts) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  EXPECT_FALSE((*asking)->connected());
  EXPECT_TRUE((*asking)->peer_regions().empty());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  EXPECT_FALSE((*asking)->connected());
  EXPECT_FALSE(Post(**asking, Send(client_, 0, 1)).ok()) << "nothing can be posted before";

  auto accepted = incoming->Accept(Bare(server_));
  ASSERT_TRUE(accepted.ok());
  const Channel* const channels[] = {asking->get(), accepted->get()};
  const End* const ends[] = {&client_, &server_};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(PumpUntil(*ends[i], OpKind::kConnected));
    EXPECT_TRUE(channels[i]->connected());
    EXPECT_TRUE(channels[i]->error().ok());
  }
  Settle();
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(ends[i]->events.size(), 1U);
    EXPECT_EQ(ends[i]->events[0].channel, channels[i]);
    EXPECT_EQ(ends[i]->events[0].code, Code::kOk);
  }
}

TEST_P(ConnectTest, AcceptingEndHasThePeersDataAtOnceAndItsRegionsOnceConnected) {
  Region* const of_client[] = {client_.region.get()};
  ChannelOptions options = Offer(client_, of_client);
  options.private_data = AsBytes(std::string_view("hello"));
  auto asking = client_.fabric->Connect(listener_->address(), options);
  ASSERT_TRUE(asking.ok());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  auto accepted = incoming->Accept(Bare(server_));
  ASSERT_TRUE(accepted.ok());
  EXPECT_EQ(AsString((*accepted)->peer_data()), "hello");
  ASSERT_TRUE(PumpUntil(server_, OpKind::kConnected));
  ASSERT_EQ((*accepted)->peer_regions().size(), 1U);
  EXPECT_EQ((*accepted)->peer_regions()[0].size, kMemoryBytes);
  EXPECT_EQ(AsString((*accepted)->peer_data()), "hello");
}

// Each end posts as soon as it is connected, whatever the other end knows.
TEST_P(ConnectTest, ConnectedComesBeforeAnythingThatThePeerSends) {
  for (int round = 0; round < 10; ++round) {
    auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
    ASSERT_TRUE(asking.ok());
    const auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    auto accepted = incoming->Accept(Bare(server_));
    ASSERT_TRUE(accepted.ok());
    bool sent[] = {false, false};
    ASSERT_TRUE(PumpUntil([&] {
      if (!sent[0] && client_.Count(OpKind::kConnected) > 0) sent[0] = Post(**asking, Send(client_, 0, 5)).ok();
      if (!sent[1] && server_.Count(OpKind::kConnected) > 0) sent[1] = Post(**accepted, Send(server_, 0, 5)).ok();
      return client_.Count(OpKind::kReceive) == 1 && server_.Count(OpKind::kReceive) == 1;
    }));
    EXPECT_EQ(client_.events[0].kind, OpKind::kConnected);
    EXPECT_EQ(server_.events[0].kind, OpKind::kConnected);
    client_.events.clear();
    server_.events.clear();
  }
}

TEST_P(ConnectTest, AnAcceptedChannelThatIsDestroyedCompletesNothing) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  ASSERT_TRUE(incoming->Accept(Bare(server_)).ok());
  Settle();
  EXPECT_TRUE(server_.events.empty());
}

TEST_P(ConnectTest, TheAcceptingEndMayPostWhenItIsConnected) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  auto accepted = incoming->Accept(Bare(server_));
  ASSERT_TRUE(accepted.ok());
  ASSERT_TRUE(PumpUntil(server_, OpKind::kConnected));
  Put(server_.bytes(0, 5), "first");
  ASSERT_TRUE(Post(**accepted, Send(server_, 0, 5)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kReceive));
  ASSERT_EQ(client_.events.size(), 2U);
  EXPECT_EQ(client_.events[0].kind, OpKind::kConnected);
  EXPECT_EQ(client_.events[1].data, "first");
}

TEST_P(ConnectTest, AnAcceptingEndThatClosesAtOnceIsClosed) {
  for (int round = 0; round < 10; ++round) {
    auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
    ASSERT_TRUE(asking.ok());
    const auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    ASSERT_TRUE(incoming->Accept(Bare(server_, "bye")).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
    // It may have been connected for a moment, by the time of the other end's close.
    if (client_.events.size() > 1) {
      ASSERT_EQ(client_.events.size(), 2U);
      EXPECT_EQ(client_.events[0].kind, OpKind::kConnected);
      EXPECT_EQ(AsString((*asking)->peer_data()), "bye");
    }
    EXPECT_FALSE((*asking)->connected());
    client_.events.clear();
  }
}

TEST_P(ConnectTest, ARejectedPeerGetsTheDataAndIsNeverConnected) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  const std::string reason = Pattern(kRejectDataMax, 3);
  incoming->Reject(AsBytes(reason));
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  Settle();
  ASSERT_EQ(client_.events.size(), 1U);
  EXPECT_EQ(client_.events[0].channel, asking->get());
  EXPECT_FALSE((*asking)->connected());
  EXPECT_FALSE((*asking)->error().ok());
  EXPECT_EQ(AsString((*asking)->peer_data()), reason);
  EXPECT_EQ(Post(**asking, Send(client_, 0, 1)).code(), Code::kUnavailable);
}

TEST_P(ConnectTest, DestroyedIncomingIsRefused) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  NextIncoming().reset();
  ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
  EXPECT_FALSE((*asking)->connected());
  EXPECT_FALSE((*asking)->error().ok());
}

TEST_P(ConnectTest, DestroyedListenerRefusesWaitingPeers) {
  for (const bool arrived : {false, true}) {
    auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
    ASSERT_TRUE(asking.ok());
    if (arrived) Settle();
    listener_.reset();
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
    EXPECT_FALSE((*asking)->connected());
    EXPECT_FALSE((*asking)->error().ok());
    client_.events.clear();
    listener_ = std::move(*server_.fabric->Listen(world_->NewAddress()));
  }
}

TEST_P(ConnectTest, AChannelOutlivesItsListener) {
  Connect();
  listener_.reset();
  Put(client_.bytes(0, 2), "ok");
  ASSERT_TRUE(Post(*client_.channel, Send(client_, 0, 2)).ok());
  EXPECT_TRUE(PumpUntil(server_, OpKind::kReceive));
}

TEST_P(ConnectTest, ConnectingWithoutAListenerFails) {
  EXPECT_TRUE(Refused(world_->NewAddress()));
  const std::string address = listener_->address();
  listener_.reset();
  EXPECT_TRUE(Refused(address)) << "nobody listens any more";
}

TEST_P(ConnectTest, AnAddressOfAnotherFabricIsInvalid) {
  for (const std::string address : {"", "nothing", "nothing:here", ":", "SHM:/tmp/x"}) {
    EXPECT_EQ(OpenFabric(address, Role::kListen).status().code(), Code::kInvalidArgument) << address;
    EXPECT_EQ(OpenFabric(address, Role::kConnect).status().code(), Code::kInvalidArgument) << address;
    EXPECT_EQ(server_.fabric->Listen(address).status().code(), Code::kInvalidArgument) << address;
    EXPECT_EQ(client_.fabric->Connect(address, Bare(client_)).status().code(), Code::kInvalidArgument) << address;
  }
}

TEST_P(ConnectTest, SecondListenerAtAnAddressIsRefused) {
  const std::string address = listener_->address();
  EXPECT_FALSE(server_.fabric->Listen(address).ok());
  EXPECT_FALSE(client_.fabric->Listen(address).ok());
  const ChannelPair pair = Connect(Bare(client_), Bare(server_));
  EXPECT_TRUE(pair.client && pair.server) << "the first listener is unharmed";
  listener_.reset();
  auto again = server_.fabric->Listen(address);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ((*again)->address(), address);
  EXPECT_EQ((*again)->Poll(), nullptr);
}

TEST_P(ConnectTest, ConnectRefusesOptionsThatDoNotFit) {
  EXPECT_EQ(ConnectStatus(Bare(client_, std::string(kConnectDataMax + 1, 'x'))).code(), Code::kInvalidArgument);
  const std::vector<Region*> many(kOfferedRegionsMax + 1, client_.region.get());
  EXPECT_EQ(ConnectStatus(Offer(client_, many)).code(), Code::kInvalidArgument);
  ChannelOptions deep = Bare(client_);
  deep.message_depth = kMessageDepthMax + 1;
  EXPECT_EQ(ConnectStatus(deep).code(), Code::kInvalidArgument);
  Settle();
  EXPECT_EQ(listener_->Poll(), nullptr) << "nobody asked";
}

TEST_P(ConnectTest, AcceptRefusesOptionsThatDoNotFit) {
  const std::string long_data(kAcceptDataMax + 1, 'x');
  const std::vector<Region*> many(kOfferedRegionsMax + 1, server_.region.get());
  for (const ChannelOptions& options : {Bare(server_, long_data), Offer(server_, many)}) {
    auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
    ASSERT_TRUE(asking.ok());
    auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    EXPECT_EQ(incoming->Accept(options).status().code(), Code::kInvalidArgument);
    incoming.reset();
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed)) << "it was not accepted";
    EXPECT_FALSE((*asking)->connected());
    client_.events.clear();
  }
}

TEST_P(ConnectTest, ARegionWithoutRightsCannotBeOffered) {
  const auto of_client = Register(client_, Access::kLocal);
  const auto of_server = Register(server_, Access::kLocal);
  Region* const client_offer[] = {client_.region.get(), of_client.get()};
  Region* const server_offer[] = {of_server.get()};
  EXPECT_EQ(ConnectStatus(Offer(client_, client_offer)).code(), Code::kInvalidArgument);
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  const auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(incoming->Accept(Offer(server_, server_offer)).status().code(), Code::kInvalidArgument);
}

TEST_P(ConnectTest, EachOfManyPeersGetsItsChannel) {
  constexpr size_t kPeers = 40;
  std::vector<ChannelPair> pairs;
  for (size_t i = 0; i < kPeers; ++i) {
    const std::string data = Pattern(1 + i, i);
    pairs.push_back(Connect(Bare(client_, data), Bare(server_, data + "!")));
    ASSERT_TRUE(pairs.back().client && pairs.back().server);
  }
  for (size_t i = 0; i < kPeers; ++i) {
    EXPECT_EQ(AsString(pairs[i].server->peer_data()), Pattern(1 + i, i));
    EXPECT_EQ(AsString(pairs[i].client->peer_data()), Pattern(1 + i, i) + "!");
  }
}

TEST_P(ConnectTest, ManyPeersAskBeforeTheFirstAnswer) {
  constexpr size_t kPeers = 16;
  std::vector<std::unique_ptr<Channel>> asking;
  std::vector<std::unique_ptr<Channel>> accepted;
  for (size_t i = 0; i < kPeers; ++i) {
    auto channel = client_.fabric->Connect(listener_->address(), Bare(client_, std::to_string(i)));
    ASSERT_TRUE(channel.ok()) << channel.status().ToString();
    asking.push_back(std::move(*channel));
  }
  for (size_t i = 0; i < kPeers; ++i) {
    const auto incoming = NextIncoming();
    ASSERT_NE(incoming, nullptr);
    auto channel = incoming->Accept(Bare(server_, AsString(incoming->peer_data())));
    ASSERT_TRUE(channel.ok());
    accepted.push_back(std::move(*channel));
  }
  ASSERT_TRUE(PumpUntil(client_, OpKind::kConnected, kPeers));
  for (size_t i = 0; i < kPeers; ++i) EXPECT_EQ(AsString(asking[i]->peer_data()), std::to_string(i));
}

TEST_P(ConnectTest, PeerThatGivesUpIsNotConnected) {
  auto asking = client_.fabric->Connect(listener_->address(), Bare(client_));
  ASSERT_TRUE(asking.ok());
  auto incoming = NextIncoming();
  ASSERT_NE(incoming, nullptr);
  asking->reset();
  auto accepted = incoming->Accept(Bare(server_));
  if (accepted.ok()) {
    EXPECT_TRUE(PumpUntil(server_, OpKind::kClosed)) << "it is closed as soon as this end can know";
    EXPECT_FALSE((*accepted)->error().ok());
  } else {
    EXPECT_EQ(accepted.status().code(), Code::kUnavailable);
  }
  Settle();
  EXPECT_TRUE(client_.events.empty());
}

TEST_P(ConnectTest, FabricKeepsTheUserPointer) {
  Connect();
  EXPECT_EQ(client_.channel->user, nullptr);
  client_.channel->user = this;
  ASSERT_TRUE(Post(*client_.channel, Read(client_, 0, 64, 0)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_EQ(client_.channel->user, this);
}

}  // namespace
}  // namespace erda::fabric
