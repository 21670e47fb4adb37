// Limits and token files that a running server loads again.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"

namespace erda {
namespace {

constexpr const char* kFirst = "the-token-of-the-first-file";
constexpr const char* kSecond = "the-token-of-the-second-file";

class ReloadTest : public E2eTest {
 protected:
  ReloadTest() {
    Write("first", kFirst);
    Write("second", kSecond);
  }
  void Write(const std::string& name, const std::string& tokens) const {
    std::ofstream(Path(name)) << tokens << '\n';
    EXPECT_EQ(chmod(Path(name).c_str(), 0600), 0);
  }
  [[nodiscard]] ServerOptions Guarded() const {
    ServerOptions options = Options(PoolKind::kDram);
    options.token_file = Path("first");
    return options;
  }
  [[nodiscard]] Result<std::unique_ptr<Client>> Try(const char* token) const {
    How how;
    how.token = token;
    return Client::Connect(Address(), how.options());
  }
  [[nodiscard]] RawPeer Ask() const { return RawPeer(Address(), BytesOf(RawPeer::Hello())); }
};

TEST_F(ReloadTest, RequestsPerSecondCountFromTheNextRequestOn) {
  const auto server = Serve(PoolKind::kDram);
  RawPeer peer(Address());
  const auto ask = [&peer] { peer.PostImm(format::kAsksTime); };
  for (int i = 0; i < 500; ++i) {
    ask();
    ASSERT_TRUE(peer.Answer());
  }
  ServerLimits limits;
  limits.requests_per_second = 100;
  ASSERT_TRUE(server->server().Reload(limits).ok());
  for (int i = 0; i < 10; ++i) {  // requests that may come at once
    ask();
    ASSERT_TRUE(peer.Answer());
  }
  // The shard holds back as many requests as the peer has slots. One more costs the peer its channel.
  EXPECT_TRUE(WaitUntil([&] {
    ask();
    return server->server().stats().violations == 1;
  }));
  EXPECT_TRUE(peer.IsClosed());

  // Without the limit, the shard serves many requests at once again, and also those that it held back.
  RawPeer other(Address());
  for (int i = 0; i < 10; ++i) {
    other.PostImm(format::kAsksTime);
    ASSERT_TRUE(other.Answer());
  }
  for (uint32_t i = 0; i < RawPeer::kSlots; ++i) other.PostImm(format::kAsksTime);
  ASSERT_TRUE(server->server().Reload({}).ok());
  for (uint32_t i = 0; i < RawPeer::kSlots; ++i) ASSERT_TRUE(other.Answer()) << i;
  for (int i = 0; i < 500; ++i) {
    other.PostImm(format::kAsksTime);
    ASSERT_TRUE(other.Answer());
  }
  EXPECT_EQ(server->server().stats().violations, 1U);
}

TEST_F(ReloadTest, ClientsPerTokenCountFromTheNextConnectionOn) {
  const auto server = Serve(PoolKind::kDram);
  const RawPeer first = Ask();
  const RawPeer second = Ask();
  ServerLimits limits;
  limits.clients_per_token = 1;
  ASSERT_TRUE(server->server().Reload(limits).ok());
  const RawPeer third = Ask();
  EXPECT_EQ(third.refusal().code, static_cast<uint8_t>(Code::kResourceExhausted));
  EXPECT_TRUE(first.connected() && second.connected()) << "those that are there stay";
  limits.clients_per_token = 3;
  ASSERT_TRUE(server->server().Reload(limits).ok());
  EXPECT_TRUE(Ask().connected());
}

TEST_F(ReloadTest, ConnectsPerSecondCountFromTheNextConnectionOn) {
  const auto server = Serve(PoolKind::kDram);
  const auto let_in = [&] {
    int count = 0;
    for (int i = 0; i < 20; ++i) count += Ask().connected() ? 1 : 0;
    return count;
  };
  EXPECT_EQ(let_in(), 20);
  ServerLimits limits;
  limits.connects_per_second = 1;
  ASSERT_TRUE(server->server().Reload(limits).ok());
  int refused = 0;
  EXPECT_TRUE(WaitUntil([&] { return (refused += Ask().connected() ? 0 : 1) == 2; }));
  ASSERT_TRUE(server->server().Reload({}).ok());
  EXPECT_EQ(let_in(), 20);
}

TEST_F(ReloadTest, ReloadReplacesTheTokenFile) {
  const auto server = Serve(PoolKind::kDram, Guarded());
  const auto inside = Try(kFirst);
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ(Try(kSecond).status().code(), Code::kPermissionDenied);
  ServerLimits limits;
  limits.token_file = Path("second");
  ASSERT_TRUE(server->server().Reload(limits).ok());
  EXPECT_TRUE(Try(kSecond).ok());
  EXPECT_EQ(Try(kFirst).status().code(), Code::kPermissionDenied);
  EXPECT_TRUE(WaitUntil([&] { return (*inside)->Put("key", "value").code() == Code::kPermissionDenied; }));
  // A change of the second file counts, and a change of the first file does not.
  Write("first", kSecond);
  Write("second", kFirst);
  EXPECT_TRUE(WaitUntil([&] { return Try(kFirst).ok(); }));
  EXPECT_EQ(Try(kSecond).status().code(), Code::kPermissionDenied);
}

TEST_F(ReloadTest, ReloadReadsTheTokenFileAtOnce) {
  const auto server = Serve(PoolKind::kDram, Guarded());
  Write("first", kSecond);
  ASSERT_TRUE(server->server().Reload({}).ok());
  EXPECT_TRUE(Try(kSecond).ok());
  EXPECT_EQ(Try(kFirst).status().code(), Code::kPermissionDenied);
}

TEST_F(ReloadTest, FailedReloadChangesNothing) {
  const auto server = Serve(PoolKind::kDram, Guarded());
  ServerLimits limits;
  limits.connects_per_second = 1;
  limits.token_file = Path("none");
  ExpectFails(server->server().Reload(limits), Code::kInvalidArgument, "token file");
  limits.token_file = Path("second");
  limits.requests_per_second = 99;
  ExpectFails(server->server().Reload(limits), Code::kInvalidArgument, "requests_per_second");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Try(kFirst).ok()) << i;
  ASSERT_TRUE(server->server().Stop().ok());
  ExpectFails(server->server().Reload({}), Code::kInvalidArgument, "stopped");
}

TEST_F(ReloadTest, ServerWithoutTokensRefusesATokenFile) {
  const auto server = Serve(PoolKind::kDram);
  ServerLimits limits;
  limits.token_file = Path("first");
  ExpectFails(server->server().Reload(limits), Code::kInvalidArgument, "token_file");
  EXPECT_TRUE(Ask().connected());
}

// For the thread sanitizer: limits and tokens change while shards and doormen use them.
TEST_F(ReloadTest, ServesWhileItIsReloaded) {
  Write("second", std::string(kSecond) + "\n" + kFirst);
  ServerOptions options = Guarded();
  options.shards = 2;
  const auto server = Serve(PoolKind::kDram, options);
  std::atomic<bool> ends{false};
  std::atomic<int> puts{0};
  AtOnce(4, [&](uint32_t thread) {
    if (thread == 0) {
      for (int i = 0; i < 200 || puts < 100; ++i) {
        ServerLimits limits;
        limits.clients_per_token = i % 3 == 0 ? 0 : 100;
        limits.requests_per_second = i % 2 == 0 ? 0 : 1'000'000;
        limits.connects_per_second = i % 5 == 0 ? 0 : 100'000;
        limits.token_file = Path(i % 2 == 0 ? "first" : "second");
        ASSERT_TRUE(server->server().Reload(limits).ok());
      }
      ends = true;
      return;
    }
    while (!ends) {
      auto client = Try(kFirst);  // both files have this token, and the server always reads one of them
      ASSERT_TRUE(client.ok()) << client.status().ToString();
      for (int i = 0; i < 10; ++i) {
        const Status status = (*client)->Put("key" + std::to_string(thread * 10 + i), "value");
        ASSERT_TRUE(status.ok()) << status.ToString();
        ++puts;
      }
    }
  });
}

}  // namespace
}  // namespace erda
