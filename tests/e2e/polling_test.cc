// The ways in which servers and clients wait.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "e2e/fixture.h"

namespace erda {
namespace {

class PollingTest : public E2eTest {
 protected:
  [[nodiscard]] std::unique_ptr<TestServer> ServeWith(Polling polling) const {
    ServerOptions options = Options(PoolKind::kDram);
    options.polling = polling;
    options.shards = 2;
    return Serve(PoolKind::kDram, options);
  }
  static void PutAndGet(Client& client) {
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(client.Put(key, key).ok());
      ASSERT_EQ(*client.Get(key), key);
    }
  }
};

TEST_F(PollingTest, ABusyServerNeverSleeps) {
  const auto server = ServeWith(Polling::kBusy);
  const auto client = Connect({.put_path = PutPath::kReserve});
  PutAndGet(*client);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  PutAndGet(*client);
  EXPECT_EQ(server->server().stats().sleeps, 0U);
  EXPECT_EQ(SettledCountersOf(*client).at("sleeps"), 0U) << "and it settles what arrived, all the same";
}

TEST_F(PollingTest, SleepingServerSleepsWithoutRequests) {
  const auto server = ServeWith(Polling::kSleep);
  const auto client = Connect();
  PutAndGet(*client);
  uint64_t sleeps = 0;
  EXPECT_TRUE(WaitUntil([&] { return (sleeps = server->server().stats().sleeps) > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sleeps = server->server().stats().sleeps;
  ASSERT_TRUE(client->Put("key", "wakes it").ok());
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().sleeps > sleeps; })) << "it sleeps again";
}

TEST_F(PollingTest, AdaptiveServerSleepsAfterSomeTime) {
  const auto server = ServeWith(Polling::kAdaptive);
  const auto client = Connect();
  PutAndGet(*client);
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().sleeps > 0; }));
}

TEST_F(PollingTest, EveryKindOfClientGetsItsAnswers) {
  for (const Polling of_server : {Polling::kAdaptive, Polling::kBusy, Polling::kSleep}) {
    const auto server = ServeWith(of_server);
    for (const Polling of_client : {Polling::kAdaptive, Polling::kBusy, Polling::kSleep}) {
      const auto client = Connect({.polling = of_client});
      PutAndGet(*client);
      EXPECT_TRUE(of_client != Polling::kBusy || client->stats().sleeps == 0);
    }
  }
}

// A sleeping server must wake up before it answers. So at some time the client finds no answer at its first look.
TEST_F(PollingTest, ASleepingClientSleeps) {
  const auto server = ServeWith(Polling::kSleep);
  const auto client = Connect({.polling = Polling::kSleep});
  EXPECT_TRUE(WaitUntil([&] {
    PutAndGet(*client);
    return client->stats().sleeps > 0;
  }));
}

TEST_F(PollingTest, InvalidPollingIsRefused) {
  ServerOptions options = Options(PoolKind::kDram);
  options.polling = Polling{3};
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "polling");
  ClientOptions of_client;
  of_client.polling = Polling{3};
  ExpectFails(Client::Connect(Address(), of_client).status(), Code::kInvalidArgument, "polling");
  options.polling = Polling::kAdaptive;
  options.flush = FlushChoice{3};
  ExpectFails(Server::Open(options).status(), Code::kInvalidArgument, "flush");
}

}  // namespace
}  // namespace erda
