// The events that a server reports to its owner: clients that break the protocol, or that are not let in.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"
#include "regression/intruder.h"

namespace erda {
namespace {

using format::Request;
using format::RequestOp;

class EventsTest : public E2eTest {
 protected:
  [[nodiscard]] ServerOptions Telling() {
    ServerOptions options = Options(PoolKind::kDram);
    options.on_event = [this](std::string_view line) {
      const std::scoped_lock lock(mutex_);
      lines_.emplace_back(line);
    };
    return options;
  }
  // Waits for the next event, and returns it.
  std::string Next() {
    std::string line;
    EXPECT_TRUE(WaitUntil([&] {
      const std::scoped_lock lock(mutex_);
      if (lines_.empty()) return false;
      line = lines_.front();
      lines_.erase(lines_.begin());
      return true;
    }));
    return line;
  }
  [[nodiscard]] bool silent() {
    const std::scoped_lock lock(mutex_);
    return lines_.empty();
  }
  [[nodiscard]] static std::string Who(uint64_t id) {
    return "client 000000000000000" + std::to_string(id) + " (shm, process " + std::to_string(getpid()) + " of user " +
           std::to_string(getuid()) + ")";
  }
  // Expects a violation by the peer with number 1, at shard 0.
  void ExpectBroken(const std::string& what) {
    EXPECT_EQ(Next(), Who(1) + ", shard 0: it broke the protocol: " + what);
  }
  void ExpectRefused(const std::string& why) { EXPECT_EQ(Next(), Who(1) + ": refused: " + why); }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(EventsTest, EachViolationIsNamed) {
  ServerOptions options = Telling();
  options.shards = 2;
  const auto server = Serve(PoolKind::kDram, options);
  std::string key = "k";
  std::string elsewhere = "k";
  const format::HelloReply hello = RawPeer(Address()).hello();
  const auto shard_of = [&](const std::string& k) { return hello.geometry.ShardOf(HashKey(k, hello.hash_seed)); };
  while (shard_of(key) != 0) key += "k";
  while (shard_of(elsewhere) != 1) elsewhere += "k";
  Request good{};
  good.op = static_cast<uint8_t>(RequestOp::kPutInline);
  good.key_size = static_cast<uint16_t>(key.size());
  good.value_size = 4;
  const auto with = [&](const std::function<void(Request&)>& change) {
    return [&, change](RawPeer& peer) {
      Request request = good;
      change(request);
      peer.Post(request, (request.key_size == elsewhere.size() ? elsewhere : key) + "....1234");
    };
  };
  const auto op = [](RequestOp code) { return static_cast<uint8_t>(code); };
  const std::vector<std::pair<std::string, std::function<void(RawPeer&)>>> breaches = {
      {"an unknown operation", with([](Request& r) { r.op = 99; })},
      {"an unknown ack", with([](Request& r) { r.ack = 2; })},
      {"an unknown condition, or one on an operation that takes none", with([](Request& r) { r.condition = 2; })},
      {"a key whose size is not 1 to 1024 bytes", with([](Request& r) { r.key_size = 0; })},
      {"a value that does not fit", with([](Request& r) { r.value_size = UINT32_MAX; })},
      {"a value that does not fit", with([&](Request& r) {
         r.op = op(RequestOp::kReserve);
         r.value_size = UINT32_MAX;
       })},
      {"an increment whose operand has not 8 bytes, or does not fit into its request slot",
       with([&](Request& r) { r.op = op(RequestOp::kIncrement); })},
      {"a key of another shard", with([&](Request& r) { r.key_size = static_cast<uint16_t>(elsewhere.size()); })},
      {"a commit without a reservation", with([&](Request& r) { r.op = op(RequestOp::kCommit); })},
      {"it asks for a piece of another's log", with([&](Request& r) {
         r.op = op(RequestOp::kDelegate);
         r.head = UINT32_MAX;
       })},
      {"a message for a slot that it does not have", [](RawPeer& peer) { peer.PostImm(RawPeer::kSlots); }},
      {"a question for the time that carries bytes",
       [](RawPeer& peer) { peer.PostImm(format::kAsksTime | 3, "12345678"); }},
      {"a message that is no request", [](RawPeer& peer) { peer.PostSend("hello"); }},
  };
  for (const auto& [what, breach] : breaches) {
    SCOPED_TRACE(what);
    RawPeer peer(Address());
    ASSERT_TRUE(peer.connected());
    breach(peer);
    EXPECT_TRUE(peer.IsClosed());
    ExpectBroken(what);
  }
  EXPECT_TRUE(silent());
}

TEST_F(EventsTest, DelegatedPutWithoutAPlacedValueIsNamed) {
  const auto server = Serve(PoolKind::kDram, Telling());
  RawPeer peer(Address());
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kDelegate);
  request.head = peer.hello().geometry.HeadOf(HashKey("key", peer.hello().hash_seed));
  request.version = 200;
  request.value_size = 4096;
  peer.Post(request, "");
  const auto chunk = peer.Answer();
  ASSERT_TRUE(chunk && chunk->header.is_chunk());
  const format::LogAddress at(chunk->address);
  request = {};
  request.op = static_cast<uint8_t>(RequestOp::kPutDelegated);
  request.key_size = 3;
  request.value_size = 4;
  request.address = format::LogAddress::At(at.slot(), at.offset_in_slot() + format::kChunkObjectsAt).raw();
  request.value_crc = 1;
  peer.Post(request, "key");
  EXPECT_TRUE(peer.IsClosed());
  ExpectBroken("a delegated put without its value, or not at the chunk's next free place");
}

TEST_F(EventsTest, NonsenseInTheChannelIsAViolation) {
  const auto server = Serve(PoolKind::kDram, Telling());
  format::HelloRequest hello = Intruder::Hello();
  hello.client_id = 1;
  Intruder intruder(Path("socket"), Intruder::kReadWrite, hello);
  ASSERT_TRUE(intruder.connected());
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(intruder.rings())).store(uint64_t{1} << 40);
  fabric::shm::RingDoorbell(intruder.socket());
  ExpectBroken("it broke a rule of the fabric");
  EXPECT_EQ(server->server().stats().violations, 1U);
}

TEST_F(EventsTest, AHelloThatIsRefusedIsNamed) {
  ServerOptions options = Telling();
  options.max_clients = 1;
  const auto server = Serve(PoolKind::kDram, options);
  const auto say = [&](const std::function<void(format::HelloRequest&)>& change, size_t bytes) {
    format::HelloRequest hello = RawPeer::Hello();
    change(hello);
    EXPECT_FALSE(RawPeer(Address(), BytesOf(hello).first(bytes)).connected());
  };
  constexpr size_t kAll = sizeof(format::HelloRequest);
  say([](auto& hello) { hello.magic = 5; }, kAll);
  ExpectRefused("this is an Erda server, and that was no Erda client");
  say([](auto& hello) { hello.protocol_version = 99; }, kAll);
  ExpectRefused("the server speaks protocol version " + std::to_string(format::kProtocolVersion) + ", the client 99");
  say([](auto& hello) { hello.shard = 7; }, kAll);
  ExpectRefused("there is no such shard");
  say([](auto& hello) { hello.role = format::Role::kMirror; }, kAll);
  ExpectRefused("the pool of this server takes no mirrors");
  say([](auto& hello) { hello.role = format::Role{2}; }, kAll);
  ExpectRefused("the peer has a role that this server does not know");
  say([](auto&) {}, kAll - 1);
  ExpectRefused("that was only a part of a hello");
  const RawPeer first(Address());
  EXPECT_FALSE(RawPeer(Address(), BytesOf(RawPeer::Hello())).connected());
  EXPECT_EQ(Next(), Who(1) + ", shard 0: refused: the server takes 1 clients, and has as many");
  EXPECT_TRUE(silent());
}

TEST_F(EventsTest, FailedProofIsNamedAndARequestForAChallengeIsNot) {
  const std::string file = Path("tokens");
  std::ofstream(file) << "the-token-of-a-writer\nthe-token-of-a-reader read-only\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  ServerOptions options = Telling();
  options.token_file = file;
  const auto server = Serve(PoolKind::kDram, options);
  const auto proved = [&](const std::string& token) { return RawPeer::Proved(Address(), token).value(); };
  EXPECT_FALSE(RawPeer(Address(), BytesOf(proved("the-token-of-nobody"))).connected());
  ExpectRefused("the server does not know this token");
  const format::HelloRequest once = proved("the-token-of-a-writer");
  EXPECT_TRUE(RawPeer(Address(), BytesOf(once)).connected());
  EXPECT_FALSE(RawPeer(Address(), BytesOf(once)).connected());
  ExpectRefused("this proof was used before");
  RawPeer reader(Address(), BytesOf(proved("the-token-of-a-reader")));
  ASSERT_TRUE(reader.connected());
  reader.PostImm(0);
  EXPECT_TRUE(reader.IsClosed());
  ExpectBroken("a request, though it may only read");
  EXPECT_TRUE(silent());
}

TEST_F(EventsTest, GoodClientsCauseNoEvents) {
  const auto server = Serve(PoolKind::kDram, Telling());
  for (int i = 0; i < 20; ++i) {
    const auto client = Connect();
    ASSERT_TRUE(client->Put("key", Bytes(1, i % 2 == 0 ? 100 : 60'000)).ok());
    EXPECT_EQ(client->Get("none").status().code(), Code::kNotFound);
    ASSERT_TRUE(client->Delete("key").ok());
  }
  EXPECT_TRUE(WaitUntil([&] { return server->server().stats().clients == 0; }));
  EXPECT_TRUE(silent());
}

}  // namespace
}  // namespace erda
