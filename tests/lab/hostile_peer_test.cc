// A peer that breaks the fabric's rules loses its channel. All other channels go on.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/hello.h"
#include "lab/fabric_fixture.h"
#include "lab/raw_rdma_peer.h"

namespace erda {
namespace {

using fabric::Channel;
using fabric::OpKind;
using fabric::verbs::Greeting;
using fabric::verbs::Knock;

constexpr uint16_t kDepth = 4;

using Bytes = std::vector<std::byte>;

Bytes BytesOfText(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Returns the bytes of a Knock and of the data after it.
Bytes Knocking(const Knock& knock, std::span<const std::byte> data) {
  Bytes bytes(sizeof(knock) + data.size());
  std::memcpy(bytes.data(), &knock, sizeof(knock));
  std::copy(data.begin(), data.end(), bytes.begin() + sizeof(knock));
  return bytes;
}

// Returns the bytes with which a client of Erda asks.
Bytes HonestKnock() {
  format::HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.slots = 1;
  hello.client_id = 1;
  return Knocking({.data_bytes = sizeof(hello), .message_depth = kDepth}, BytesOf(hello));
}

// Returns requests to connect that each listener refuses.
std::vector<Bytes> BadKnocks() {
  return {{},
          BytesOfText("garbage"),
          BytesOfText(fabric::Pattern(56, 3)),
          Knocking({.magic = 1, .message_depth = kDepth}, {}),
          Knocking({.version = 99, .message_depth = kDepth}, {}),
          Knocking({.data_bytes = 255, .message_depth = kDepth}, {}),
          Knocking({.message_depth = 0}, {}),
          Knocking({.message_depth = fabric::kMessageDepthMax + 1}, {})};
}

struct Attack {
  std::string name;
  bool connects = false;  // It sends a valid greeting.
  size_t delivered = 0;   // The most messages that may be delivered.
  std::function<void(RawRdmaPeer&)> run;
};

void Greet(RawRdmaPeer& peer) { peer.Send(BytesOf(peer.HonestGreeting())); }

void GreetWith(RawRdmaPeer& peer, void (*change)(Greeting&)) {
  Greeting greeting = peer.HonestGreeting();
  change(greeting);
  peer.Send(BytesOf(greeting));
}

// Each region looks valid. So does the one beyond the limit, whose bytes are in the data.
void OfferTooManyRegions(Greeting& greeting) {
  const fabric::verbs::OfferedRegion region{0, 4096, 0, static_cast<uint32_t>(fabric::Access::kRemoteRead)};
  greeting.region.fill(region);
  const auto bytes = BytesOf(region);
  std::copy(bytes.begin(), bytes.end(), greeting.data.begin());
  greeting.regions = fabric::kOfferedRegionsMax + 1;
}

std::vector<Attack> Attacks() {
  const Bytes text = BytesOfText("a message");
  return {
      {"WritesBeforeItsGreeting", false, 0, [](RawRdmaPeer& peer) { peer.WriteImm(); }},
      {"SendsBeforeItsGreeting", false, 0, [=](RawRdmaPeer& peer) { peer.Send(text); }},
      {"GreetsWithGarbage", false, 0,
       [](RawRdmaPeer& peer) { peer.Send(BytesOfText(fabric::Pattern(sizeof(Greeting), 5))); }},
      {"GreetsTooShort", false, 0,
       [](RawRdmaPeer& peer) { peer.Send(BytesOf(peer.HonestGreeting()).first(sizeof(Greeting) - 1)); }},
      {"OffersTooManyRegions", false, 0, [](RawRdmaPeer& peer) { GreetWith(peer, OfferTooManyRegions); }},
      {"OffersLocalMemory", false, 0, [](RawRdmaPeer& peer) { GreetWith(peer, [](Greeting& g) { g.regions = 1; }); }},
      {"SaysTooMuch", false, 0,
       [](RawRdmaPeer& peer) { GreetWith(peer, [](Greeting& g) { g.data_bytes = fabric::kAcceptDataMax + 1; }); }},
      {"SendsTooLong", true, 0,
       [](RawRdmaPeer& peer) {
         Greet(peer);
         peer.Send(Bytes(fabric::kSendBytesMax + 1));
       }},
      {"SendsLongerThanAReceive", true, 0,
       [](RawRdmaPeer& peer) {
         Greet(peer);
         peer.Send(Bytes(fabric::verbs::kReceiveBytes + 1));
       }},
      {"FloodsWithSends", true, kDepth,
       [=](RawRdmaPeer& peer) {
         Greet(peer);
         peer.Send(text, 100);
       }},
      {"FloodsWithWrites", true, kDepth,
       [](RawRdmaPeer& peer) {
         Greet(peer);
         for (int i = 0; i < 100; ++i) peer.WriteImm();
       }},
  };
}

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

std::string NameOf(const testing::TestParamInfo<Attack>& info) { return info.param.name; }

// --- At a listening end of the fabric

class HostileFabricTest : public FabricLab {
 protected:
  void SetUp() override {
    FabricLab::SetUp();
    if (HasFatalFailure()) return;
    honest_ = Connect();
    ASSERT_NE(honest_, nullptr);
    ASSERT_TRUE(Works(*honest_));
  }

  Result<std::unique_ptr<RawRdmaPeer>> Peer(const Bytes& private_data) {
    auto asking = std::async(std::launch::async, [&] { return RawRdmaPeer::Connect(Address(), private_data); });
    EXPECT_TRUE(PumpUntil([&] { return asking.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    return asking.get();
  }

  // Checks the channel that was there before, and a new one.
  void ExpectOthersWork() {
    EXPECT_TRUE(Works(*honest_));
    const auto another = Connect();
    ASSERT_NE(another, nullptr);
    EXPECT_TRUE(Works(*another));
  }

  std::unique_ptr<Channel> honest_;
};

class HostilePeerLab : public HostileFabricTest, public testing::WithParamInterface<Attack> {};

INSTANTIATE_TEST_SUITE_P(Attacks, HostilePeerLab, testing::ValuesIn(Attacks()), NameOf);

TEST_P(HostilePeerLab, HostilePeerLosesItsChannel) {
  auto peer = Peer(HonestKnock());
  ASSERT_TRUE(peer.ok()) << peer.status().ToString();
  const Channel* const channel = accepted_.back().get();
  GetParam().run(**peer);
  // All requests of the attack have arrived before the server polls.
  ASSERT_TRUE(WaitUntil([&] { return (*peer)->idle(); }));
  const auto connects = [&] { return CountOf(server_, channel, OpKind::kConnected); };
  const auto delivered = [&] {
    return CountOf(server_, channel, OpKind::kReceive) + CountOf(server_, channel, OpKind::kReceiveImm);
  };
  const auto closed = [&] { return CountOf(server_, channel, OpKind::kClosed); };
  // Ends when the channel is closed, or when the attack has reached more than it may. Then the test has failed.
  const size_t connects_at_most = GetParam().connects ? 1 : 0;
  EXPECT_TRUE(PumpUntil([&] {
    return closed() > 0 || connects() > connects_at_most || delivered() > GetParam().delivered;
  })) << "the channel goes on";
  ASSERT_EQ(connects(), connects_at_most) << "its greeting was taken";
  ASSERT_LE(delivered(), GetParam().delivered) << "a message got through that breaks the rules";
  ASSERT_EQ(closed(), 1U);
  EXPECT_EQ(channel->error().code(), Code::kUnavailable) << channel->error().ToString();
  ExpectOthersWork();
  EXPECT_EQ(CountOf(server_, channel, OpKind::kClosed), 1U);
  std::erase_if(accepted_, [&](const auto& one) { return one.get() == channel; });
  EXPECT_TRUE(PumpUntil([&] { return (*peer)->closed(); })) << "now at the latest it hears of that";
  ExpectOthersWork();
}

// The peer claims room for more messages than the depth, again and again. The messages would pile up in the other end's
// memory.
class HostileCreditLab : public HostileFabricTest {
 protected:
  // Returns a peer that has sent its greeting and received the other end's.
  std::unique_ptr<RawRdmaPeer> Greeted() {
    auto peer = Peer(HonestKnock());
    EXPECT_TRUE(peer.ok()) << peer.status().ToString();
    if (!peer.ok()) return nullptr;
    Greet(**peer);
    EXPECT_TRUE(PumpUntil([&] { return accepted_.back()->connected() && (*peer)->greeted(); })) << "no greeting came";
    return (*peer)->greeted() ? *std::move(peer) : nullptr;
  }
  // Posts a message to the peer, and returns the status.
  Status PostOne(Channel& channel) { return fabric::Post(channel, fabric::Send(server_, 0, 1)); }

  void ExpectOnlyThisOneIsClosed(Channel& channel, RawRdmaPeer& peer) {
    EXPECT_TRUE(PumpUntil([&] { return CountOf(server_, &channel, OpKind::kClosed) > 0; }));
    EXPECT_EQ(channel.error().code(), Code::kUnavailable) << channel.error().ToString();
    ExpectOthersWork();
    std::erase_if(accepted_, [&](const auto& one) { return one.get() == &channel; });
    EXPECT_TRUE(PumpUntil([&] { return peer.closed(); })) << "now at the latest it hears of that";
    ExpectOthersWork();
  }
};

TEST_F(HostileCreditLab, PeerThatReportsTooManyMessagesLosesItsChannel) {
  for (const uint64_t more : {uint64_t{1}, uint64_t{kDepth}, UINT64_MAX - 2}) {
    SCOPED_TRACE(more);
    const auto peer = Greeted();
    ASSERT_NE(peer, nullptr);
    Channel& channel = *accepted_.back();
    ASSERT_TRUE(PostOne(channel).ok());
    ASSERT_TRUE(PostOne(channel).ok());
    peer->TellConsumed(2 + more);
    ASSERT_TRUE(WaitUntil([&] { return peer->idle(); }));
    const Status posted = PostOne(channel);
    ASSERT_EQ(posted.code(), Code::kUnavailable) << "the count was believed: " << posted.ToString();
    ExpectOnlyThisOneIsClosed(channel, *peer);
  }
}

// The peer lies in the count that the other end reads.
TEST_F(HostileCreditLab, PeerThatAnswersTooManyMessagesLosesItsChannel) {
  const auto peer = Greeted();
  ASSERT_NE(peer, nullptr);
  Channel& channel = *accepted_.back();
  peer->KeepConsumed(kDepth + 1);
  for (uint16_t i = 0; i < kDepth; ++i) ASSERT_TRUE(PostOne(channel).ok());
  Status posted = PostOne(channel);
  ASSERT_EQ(posted.code(), Code::kResourceExhausted) << "it asks first: " << posted.ToString();
  ASSERT_TRUE(PumpUntil([&] {
    posted = PostOne(channel);
    return posted.code() != Code::kResourceExhausted;
  })) << "the count was ignored";
  ASSERT_EQ(posted.code(), Code::kUnavailable) << "the count was believed: " << posted.ToString();
  ExpectOnlyThisOneIsClosed(channel, *peer);
}

// Each message of a right count makes room for another one.
TEST_F(HostileCreditLab, PeerThatCountsRightKeepsItsChannel) {
  const auto peer = Greeted();
  ASSERT_NE(peer, nullptr);
  Channel& channel = *accepted_.back();
  for (uint16_t i = 0; i < kDepth; ++i) ASSERT_TRUE(PostOne(channel).ok());
  EXPECT_EQ(PostOne(channel).code(), Code::kResourceExhausted);
  peer->TellConsumed(kDepth);
  ASSERT_TRUE(WaitUntil([&] { return peer->idle(); }));
  const Status posted = PostOne(channel);
  EXPECT_TRUE(posted.ok()) << posted.ToString();
  EXPECT_FALSE(peer->closed());
}

class HostileKnockLab : public HostileFabricTest {};

TEST_F(HostileKnockLab, HostileKnockIsRefused) {
  const size_t accepted = accepted_.size();
  for (const Bytes& knock : BadKnocks()) {
    SCOPED_TRACE(knock.size());
    EXPECT_EQ(Peer(knock).status().code(), Code::kUnavailable);
  }
  EXPECT_EQ(accepted_.size(), accepted);
  ExpectOthersWork();
}

// --- At a server

class HostileClientLab : public LabTest {
 protected:
  void SetUp() override {
    LabTest::SetUp();
    if (!HasFatalFailure()) WipeDevice();
  }
};

TEST_F(HostileClientLab, HostileClientLeavesTheServerToOthers) {
  const auto server = StartServer();
  const auto honest = Connect();
  ASSERT_TRUE(honest);
  int round = 0;
  const auto expect_others_work = [&] {
    const std::string value = "value " + std::to_string(++round);
    EXPECT_TRUE(honest->Put("key", value).ok());
    const auto found = honest->Get("key");
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_EQ(*found, value);
  };
  std::vector<Bytes> bad = BadKnocks();
  bad.push_back(Knocking({.data_bytes = 24, .message_depth = kDepth}, BytesOfText("no Hello of an Erda client")));
  for (const Bytes& knock : bad) {
    SCOPED_TRACE(knock.size());
    EXPECT_EQ(RawRdmaPeer::Connect(Address(), knock).status().code(), Code::kUnavailable);
    expect_others_work();
  }
  for (const Attack& attack : Attacks()) {
    SCOPED_TRACE(attack.name);
    auto peer = RawRdmaPeer::Connect(Address(), HonestKnock());
    ASSERT_TRUE(peer.ok()) << peer.status().ToString();
    attack.run(**peer);
    const auto admitted = [&] { return !attack.connects && InfoOf(*honest)["clients"] != "1"; };
    ASSERT_TRUE(WaitUntil([&] { return (*peer)->closed() || admitted(); })) << "the channel goes on";
    ASSERT_FALSE(admitted()) << "its greeting was taken";
    expect_others_work();
    ASSERT_TRUE(WaitUntil([&] { return InfoOf(*honest)["clients"] == "1"; })) << "its session goes on";
  }
  const auto another = Connect();
  ASSERT_TRUE(another);
  EXPECT_TRUE(another->Put("other", "value").ok());
  StopServer(*server);
}

}  // namespace
}  // namespace erda
