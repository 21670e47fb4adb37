// The limits of one client, which leave room for other clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/descriptors.h"
#include "base/hash.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"

namespace erda {
namespace {

class ClientLimits : public E2eTest {
 protected:
  [[nodiscard]] ServerOptions Small() const { return Options(PoolKind::kDram); }
};

TEST_F(ClientLimits, OneTokenCannotUseUpTheConnections) {
  const std::string file = Path("tokens");
  std::ofstream(file) << "the-token-of-the-greedy\nthe-token-of-another\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  ServerOptions options = Small();
  options.token_file = file;
  options.max_clients = 6;
  options.clients_per_token = 4;
  options.shards = 2;
  const auto server = Serve(PoolKind::kDram, options);
  How greedy;
  greedy.token = "the-token-of-the-greedy";
  How other;
  other.token = "the-token-of-another";
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Connect(greedy));
  for (int i = 0; i < 3; ++i) {
    ExpectFails(Client::Connect(Address(), greedy.options()).status(), Code::kResourceExhausted,
                "clients of this token have 4 connections");
  }
  const auto first = Connect(other);
  const auto second = Connect(other);
  EXPECT_TRUE(first->Put("key", "value").ok());
  EXPECT_EQ(*second->Get("key"), "value");
  ExpectFails(Client::Connect(Address(), other.options()).status(), Code::kResourceExhausted, "6 clients");
  clients.pop_back();
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().clients == 2 * 5; }));
  EXPECT_NE(Connect(greedy), nullptr) << "one has left";
}

TEST_F(ClientLimits, WithoutTokensTheLimitCountsByClientId) {
  ServerOptions options = Small();
  options.clients_per_token = 2;
  const auto server = Serve(PoolKind::kDram, options);
  const auto hello = [](uint64_t id) {
    format::HelloRequest request = RawPeer::Hello();
    request.client_id = id;
    return request;
  };
  const RawPeer first(Address(), BytesOf(hello(5)));
  auto second = std::make_unique<RawPeer>(Address(), BytesOf(hello(5)));
  EXPECT_TRUE(first.connected() && second->connected());
  const RawPeer third(Address(), BytesOf(hello(5)));
  EXPECT_FALSE(third.connected());
  EXPECT_EQ(third.refusal().code, static_cast<uint8_t>(Code::kResourceExhausted));
  EXPECT_TRUE(RawPeer(Address(), BytesOf(hello(6))).connected());
  second.reset();
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().clients == 1; }));
  EXPECT_TRUE(RawPeer(Address(), BytesOf(hello(5))).connected());
}

TEST_F(ClientLimits, FastClientIsServedAtTheRate) {
  ServerOptions options = Small();
  options.requests_per_second = 100;
  const auto server = Serve(PoolKind::kDram, options);
  const auto fast = Connect();
  std::vector<int> ended;
  for (int i = 0; i < 60; ++i) {  // the server serves ten at once, and the rest within half a second
    EXPECT_TRUE(fast->PutAsync("key" + std::to_string(i), "value",
                               [&ended, i](const Status& status) {
                                 EXPECT_TRUE(status.ok()) << status.ToString();
                                 ended.push_back(i);
                               })
                    .ok());
  }
  const auto other = Connect();
  EXPECT_TRUE(other->Put("other", "value").ok());
  EXPECT_TRUE(fast->Drain().ok());
  ASSERT_EQ(ended.size(), 60U);
  EXPECT_TRUE(std::ranges::is_sorted(ended));
  const ServerStats stats = server->server().stats();
  EXPECT_EQ(stats.puts, 61U);
  EXPECT_EQ(stats.refused + stats.violations, 0U);
}

TEST_F(ClientLimits, MoreRequestsThanSlotsThatWaitCostTheChannel) {
  std::mutex mutex;
  std::string told;
  ServerOptions options = Small();
  options.requests_per_second = 100;
  options.on_event = [&](std::string_view line) {
    const std::scoped_lock lock(mutex);
    told = line;
  };
  const auto server = Serve(PoolKind::kDram, options);
  RawPeer peer(Address());
  for (int i = 0; i < 10; ++i) {  // the requests that may come at once
    peer.PostImm(format::kAsksTime);
    ASSERT_TRUE(peer.Answer());
  }
  // The shard takes more messages as they come, and lets them wait.
  EXPECT_TRUE(WaitUntil([&] {
    peer.PostImm(format::kAsksTime);
    return server->server().stats().violations == 1;
  }));
  EXPECT_TRUE(peer.IsClosed());
  const std::scoped_lock lock(mutex);
  // The peer takes no answers, so on a busy machine the shard may notice that first.
  EXPECT_NE(told.find("at once than it has slots"), std::string::npos) << told;
}

// docs/security.md, "What one client can hold".
TEST_F(ClientLimits, MemoryOfOneClientIsBounded) {
  ServerOptions options = Small();
  options.slots_per_client = 4;
  options.slot_bytes = 2048;
  options.reservations_per_client = 16;
  const auto server = Serve(PoolKind::kDram, options);
  const uint64_t before = server->server().stats().registered_bytes;
  RawPeer peer(Address());
  ASSERT_TRUE(peer.connected());
  // The peer's request slots, and the replies.
  EXPECT_EQ(server->server().stats().registered_bytes - before, 4 * (2048 + sizeof(format::Reply)));
  EXPECT_EQ(peer.offered()[format::kRequestRegion].size, 4U * 2048);
  // Reservations, into which the peer writes itself.
  uint32_t reserved = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    peer.Post(RawPeer::ReserveRequest(key, 100, Ack::kPersisted), key);
    const auto answer = peer.Answer();
    ASSERT_TRUE(answer);
    if (answer->code == 0) {
      ++reserved;
    } else {
      EXPECT_EQ(answer->reason, static_cast<uint8_t>(format::Reason::kTooManyReservations));
    }
  }
  EXPECT_EQ(reserved, 16U);
  // Chunks of the log.
  uint32_t chunks = 0;
  for (int i = 0; i < 40; ++i) {
    format::Request request{};
    request.op = static_cast<uint8_t>(format::RequestOp::kDelegate);
    request.version = 200;
    request.value_size = UINT32_MAX;
    peer.Post(request, "");
    const auto answer = peer.Answer();
    ASSERT_TRUE(answer);
    if (answer->code == 0) ++chunks;
  }
  EXPECT_GT(chunks, 0U);
  EXPECT_LE(chunks, format::kChunksPerClient);
  const auto other = Connect();
  const Info info = InfoOf(*other);
  EXPECT_LE(std::stoull(info.at("chunk_bytes")), std::stoull(info.at("log_bytes_total")) / 16);
  EXPECT_TRUE(other->Put("other", "value").ok());
}

TEST_F(ClientLimits, DescriptorsAndRegisteredMemoryAreVisible) {
  ServerOptions options = Small();
  options.shards = 2;
  const auto server = Serve(PoolKind::kDram, options);
  const auto looking = Connect();
  const ServerStats before = server->server().stats();
  EXPECT_EQ(before.descriptors, CountDescriptors());
  EXPECT_GT(before.registered_bytes, 2 * options.pool_size) << "to be read, and to be written";
  EXPECT_LT(before.registered_bytes, 3 * options.pool_size);
  EXPECT_EQ(std::stoull(InfoOf(*looking).at("registered_bytes")), before.registered_bytes);
  {
    const auto other = Connect();
    const ServerStats with = server->server().stats();
    EXPECT_GE(with.descriptors, before.descriptors + 2);
    const uint64_t each = uint64_t{options.slots_per_client} * (options.slot_bytes + sizeof(format::Reply));
    EXPECT_LE(with.registered_bytes - before.registered_bytes, 2 * each);
    EXPECT_GT(with.registered_bytes, before.registered_bytes);
    // Clients see the number, a little later.
    EXPECT_TRUE(WaitUntil([&] { return std::stoull(InfoOf(*looking).at("descriptors")) > before.descriptors; }));
  }
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().registered_bytes == before.registered_bytes; }));
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().descriptors == before.descriptors; }));
}

TEST_F(ClientLimits, ClientThatConnectsTooOftenIsRefusedWithAReason) {
  std::mutex mutex;
  std::string told;
  ServerOptions options = Small();
  options.connects_per_second = 3;
  options.on_event = [&](std::string_view line) {
    const std::scoped_lock lock(mutex);
    told = line;
  };
  const auto server = Serve(PoolKind::kDram, options);
  const RawPeer inside(Address());
  uint64_t let_in = 1;
  uint64_t refused = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (refused == 0 || let_in < 5) {  // some come at once, and one has to wait for its turn
    const RawPeer peer(Address(), BytesOf(RawPeer::Hello()));
    if (peer.connected()) {
      ++let_in;
      continue;
    }
    ++refused;
    EXPECT_EQ(peer.refusal().code, static_cast<uint8_t>(Code::kResourceExhausted));
    EXPECT_EQ(std::string(peer.refusal().message.data()), "more than 3 clients came within a second");
  }
  // Three at once and one more in each third of a second, but for the one that was connected first.
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(static_cast<double>(let_in), 4 + passed.count() * 3);
  EXPECT_TRUE(inside.connected());
  const std::scoped_lock lock(mutex);
  EXPECT_NE(told.find("refused: more than 3 clients came within a second"), std::string::npos) << told;
}

TEST_F(ClientLimits, InvalidRateIsRefused) {
  ServerOptions options = Small();
  options.requests_per_second = 99;
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "requests_per_second");
  options.requests_per_second = 0;
  options.connects_per_second = 1'000'001;
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "connects_per_second");
}

}  // namespace
}  // namespace erda
