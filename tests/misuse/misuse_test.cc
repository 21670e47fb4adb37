// Wrong use of a client or server ends with a status or a message (docs/threads.md, "Misuse"), in C++ and C.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "client/turn.h"
#include "erda/client.h"
#include "erda/erda.h"
#include "erda/server.h"

namespace erda {
namespace {

class Misuse : public testing::Test {
 protected:
  void SetUp() override {
    server_ = Opened();
    ASSERT_TRUE(server_->Start().ok());
    auto client = Client::Connect(Address());
    ASSERT_TRUE(client.ok()) << client.status().ToString();
    client_ = *std::move(client);
    ASSERT_TRUE(client_->Put("key", "value").ok());
  }
  [[nodiscard]] std::string Address() const { return "shm:" + (folder_ / "socket").string(); }
  [[nodiscard]] std::unique_ptr<Server> Opened(std::function<void(std::string_view)> on_event = {}) const {
    ServerOptions options;
    options.pool = "dram:";
    options.pool_size = uint64_t{64} << 20;
    options.listen = {Address()};
    options.connects_per_second = on_event ? 1 : 0;
    options.on_event = std::move(on_event);
    auto server = Server::Open(options);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    return server.ok() ? *std::move(server) : nullptr;
  }
  static void ExpectRefused(const Status& status, std::string_view words) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_NE(status.message().find(words), std::string_view::npos) << status.ToString();
  }
  // Runs the call in a callback of the client, and ends the operations in flight.
  void InCallback(const std::function<void()>& body) {
    bool ran = false;
    ASSERT_TRUE(client_
                    ->GetAsync("key",
                               [&](Result<std::string_view>) {
                                 body();
                                 ran = true;
                               })
                    .ok());
    EXPECT_TRUE(client_->Drain().ok());
    EXPECT_TRUE(ran);
  }
  // Expects that the client refuses every call that waits, with these words.
  static void ExpectAllRefused(Client& client, std::string_view words) {
    std::byte out[8];
    ExpectRefused(client.Get("key").status(), words);
    ExpectRefused(client.Get("key", out).status(), words);
    ExpectRefused(client.GetVersioned("key").status(), words);
    ExpectRefused(client.Put("key", "other"), words);
    ExpectRefused(client.Put("key", "other", PutOptions()).status(), words);
    ExpectRefused(client.Delete("key"), words);
    ExpectRefused(client.Delete("key", DeleteOptions()), words);
    ExpectRefused(client.Increment("number").status(), words);
    ExpectRefused(client.MakeBuffer(10).status(), words);
    ExpectRefused(client.Scan().status(), words);
    ExpectRefused(client.Clean(), words);
    ExpectRefused(client.Drain(), words);
    ExpectRefused(client.Wait(std::chrono::seconds(1)).status(), words);
    ExpectRefused(client.Arm().status(), words);
    ExpectRefused(client.ServerInfo().status(), words);
    ExpectRefused(client.ServerActivity().status(), words);
    EXPECT_EQ(client.Poll(), 0U);
    const std::string_view keys[] = {"key", "other"};
    for (const auto& one : client.MultiGet(keys)) ExpectRefused(one.status(), words);
    EXPECT_EQ(client.MultiGetVersioned(keys).size(), 2U);
    const KeyValue puts[] = {{"key", "other"}, {"other", "value"}};
    const auto results = client.MultiPut(puts);
    EXPECT_EQ(results.size(), 2U);
    for (const auto& one : results) ExpectRefused(one.status(), words);
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(Misuse, CallsThatWaitAreRefusedInACallback) {
  InCallback([&] { ExpectAllRefused(*client_, "a callback of this client must not"); });
  EXPECT_EQ(*client_->Get("key"), "value");
}

TEST_F(Misuse, CallbacksMayStartOperations) {
  int ended = 0;
  InCallback([&] {
    EXPECT_TRUE(client_->PutAsync("key", "later", [&](const Status& put) { ended += put.ok() ? 1 : 0; }).ok());
    EXPECT_TRUE(client_->GetAsync("key", [&](auto got) { ended += got.ok() ? 1 : 0; }).ok());
  });
  EXPECT_EQ(ended, 2);
}

TEST_F(Misuse, CallsOfAnotherThreadAreRefusedDuringACall) {
  InCallback([&] {
    std::thread([&] {
      ExpectAllRefused(*client_, "another thread is in a call of this client");
      ExpectRefused(client_->GetAsync("key", [](auto) {}), "another thread");
      ExpectRefused(client_->PutAsync("key", "other", [](const Status&) {}), "another thread");
    }).join();
  });
  EXPECT_EQ(*client_->Get("key"), "value");
  std::thread([&] { EXPECT_EQ(*client_->Get("key"), "value"); }).join();
}

// A thread that ends its call finds another thread's word. The other thread came between the look and the store of this
// one.
TEST_F(Misuse, UnnoticedOverlapOfCallsBreaksTheClient) {
  client::Turns turns;
  std::optional<client::Turn> own(turns);
  EXPECT_EQ(turns.Find(), client::Turns::Misuse::kInCallback);
  std::thread([&] { own.reset(); }).join();
  EXPECT_EQ(turns.Find(), client::Turns::Misuse::kOverlapped);
  EXPECT_FALSE(client::Turn(turns).is_mine());
  EXPECT_FALSE(client::NestedTurn(turns).is_mine());
  ExpectRefused(turns.Refusal(), "two threads were in calls of this client at once");
}

class MisuseDeathNoSanitizer : public Misuse {
 protected:
  // The child executes the program again. After a fork alone the client would be its parent's.
  MisuseDeathNoSanitizer() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(MisuseDeathNoSanitizer, DestroyingAClientInItsCallbackEndsTheProcessWithAMessage) {
  EXPECT_DEATH(InCallback([&] { client_.reset(); }), "a Client is destroyed in a call of it: a callback");
}

TEST_F(MisuseDeathNoSanitizer, DestroyingAClientDuringACallEndsTheProcessWithAMessage) {
  EXPECT_DEATH(InCallback([&] { std::thread([&] { client_.reset(); }).join(); }), "another thread is in a call");
}

TEST_F(Misuse, CallsOfTheCApiAreRefusedInACallback) {
  erda_client* client = nullptr;
  ASSERT_EQ(erda_client_connect(Address().c_str(), nullptr, &client), ERDA_OK);
  const auto done = [](void* user, const erda_result*) {
    auto* self = *static_cast<erda_client**>(user);
    size_t finished = 1;
    EXPECT_EQ(erda_client_poll(self, &finished), ERDA_INVALID_ARGUMENT);
    EXPECT_EQ(finished, 0U);
    EXPECT_NE(std::string(erda_client_error()).find("callback"), std::string::npos);
    EXPECT_EQ(erda_client_drain(self), ERDA_INVALID_ARGUMENT);
    EXPECT_EQ(erda_client_delete(self, "key", 3, nullptr), ERDA_INVALID_ARGUMENT);
    erda_result* result = nullptr;
    EXPECT_EQ(erda_client_get_alloc(self, "key", 3, &result), ERDA_INVALID_ARGUMENT);
    EXPECT_EQ(result, nullptr);
    const erda_bytes key{"key", 3};
    EXPECT_EQ(erda_client_multi_put(self, &key, &key, nullptr, 1, &result), ERDA_OK);
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(result->code, ERDA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(result->message).find("callback"), std::string::npos);
    erda_client_free(result);
  };
  ASSERT_EQ(erda_client_get_async(client, "key", 3, done, &client), ERDA_OK);
  EXPECT_EQ(erda_client_drain(client), ERDA_OK);
  erda_client_close(client);
}

// Runs `body` in a child. Returns how the child ended. The child runs no destructors of the test.
int InChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

// The server has threads. The children here use nothing that those could have locked.
class ForksNoSanitizer : public Misuse {};

TEST_F(ForksNoSanitizer, ChildThatUsesItsParentsClientIsRefused) {
  EXPECT_EQ(InChild([&] {
              ExpectAllRefused(*client_, "made before a fork");
              ExpectRefused(client_->GetAsync("key", [](auto) {}), "made before a fork");
            }),
            0);
  EXPECT_EQ(*client_->Get("key"), "value");
  EXPECT_EQ(client_->stats().reconnects, 0U);
}

TEST_F(ForksNoSanitizer, ChildThatDestroysItsParentsClientDoesNotDisturbTheParent) {
  std::optional<Buffer> buffer(*client_->MakeBuffer(100));
  EXPECT_EQ(InChild([&] {
              client_.reset();
              buffer.reset();
            }),
            0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client_->Put("key", "more").ok());
  EXPECT_EQ(*client_->Get("key", *buffer), 4U);
  EXPECT_EQ(client_->stats().reconnects, 0U);
  EXPECT_EQ(client_->stats().failures, 0U);
}

TEST_F(ForksNoSanitizer, ChildThatStopsOrDestroysItsParentsServerDoesNotDisturbTheParent) {
  EXPECT_EQ(InChild([&] {
              ExpectRefused(server_->Start(), "opened before a fork");
              ExpectRefused(server_->Stop(), "opened before a fork");
              server_.reset();
            }),
            0);
  EXPECT_TRUE(client_->Put("key", "more").ok());
  EXPECT_EQ(client_->stats().reconnects, 0U);
  EXPECT_TRUE(server_->Stop().ok());
}

TEST_F(Misuse, CallbackOfAServerCannotStopIt) {
  client_.reset();
  server_.reset();
  std::atomic<Server*> own{nullptr};
  std::atomic<int> told{0};
  const auto server = Opened([&](std::string_view) {
    ExpectRefused(own.load()->Stop(), "a callback of this server must not");
    ExpectRefused(own.load()->Start(), "a callback of this server must not");
    (void)own.load()->stats();
    ++told;
  });
  own = server.get();
  ASSERT_TRUE(server->Start().ok());
  for (int i = 0; i < 5; ++i) (void)Client::Connect(Address());  // Too fast for this server.
  EXPECT_GT(told, 0);
  EXPECT_TRUE(server->Stop().ok());
}

TEST_F(MisuseDeathNoSanitizer, DestroyingAServerInItsCallbackEndsTheProcessWithAMessage) {
  client_.reset();
  server_.reset();
  EXPECT_DEATH(
      {
        std::unique_ptr<Server> server;
        server = Opened([&](std::string_view) { server.reset(); });
        (void)server->Start();
        for (int i = 0; i < 5; ++i) (void)Client::Connect(Address());
        std::this_thread::sleep_for(std::chrono::seconds(5));
      },
      "a Server is destroyed in a callback of it");
}

}  // namespace
}  // namespace erda
