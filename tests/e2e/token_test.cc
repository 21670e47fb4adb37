// Servers that ask for a token: the clients that they let in, with which rights, and the view of the others.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "base/unique_fd.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"
#include "fabric/shm/socket.h"
#include "format/proof.h"

namespace erda {
namespace {

using format::HelloChallenge;
using format::HelloRequest;

const std::string kWriter = "the-token-of-a-writer";
const std::string kReader = "the-token-of-a-reader";
const std::string kMirror = "the-token-of-a-mirror";

class TokenTest : public EveryPool {
 protected:
  [[nodiscard]] ServerOptions Guarded(uint32_t shards = 1) const {
    Write(kWriter + "\n" + kReader + " read-only\n" + kMirror + " mirror\n");
    ServerOptions options = Options();
    options.shards = shards;
    options.token_file = Path("tokens");
    return options;
  }
  void Write(const std::string& text) const {
    const std::string next = Path("tokens.next");
    std::ofstream(next) << text;
    EXPECT_EQ(chmod(next.c_str(), 0600), 0);
    std::filesystem::rename(next, Path("tokens"));
  }
  // Returns the reason why a client with this token is not let in.
  [[nodiscard]] Status Refusal(const std::string& token) const {
    How how;
    how.token = token;
    return Client::Connect(Address(), how.options()).status();
  }
  [[nodiscard]] std::unique_ptr<Client> ConnectWith(const std::string& token) const {
    How how;
    how.token = token;
    return Connect(how);
  }
  // Returns the challenge that a raw peer with this hello gets when the server does not let it in.
  [[nodiscard]] HelloChallenge ChallengeOf(const HelloRequest& hello) const {
    const RawPeer peer(Address(), BytesOf(hello));
    EXPECT_FALSE(peer.connected());
    EXPECT_TRUE(peer.offered().empty());
    EXPECT_EQ(peer.said().size(), sizeof(HelloChallenge)) << "and no more";
    return peer.said().size() < sizeof(HelloChallenge) ? HelloChallenge{} : LoadAs<HelloChallenge>(peer.said());
  }
  [[nodiscard]] HelloRequest Proved(const std::string& token, format::Role role = format::Role::kClient) const {
    HelloRequest hello = RawPeer::Hello();
    hello.role = role;
    const HelloChallenge challenge = ChallengeOf(hello);
    EXPECT_EQ(challenge.is_challenge, 1);
    hello.challenge = challenge.challenge;
    hello.proof = format::ClientProof(token, challenge.nonce, hello);
    return hello;
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, TokenTest, kEveryPool, PoolName);

void ExpectDenied(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), Code::kPermissionDenied) << status.ToString();
  EXPECT_NE(status.message().find(words), std::string_view::npos) << status.ToString();
}

TEST_P(TokenTest, ClientWithATokenMayReadAndWrite) {
  const auto server = Serve(Guarded(2));
  const auto client = ConnectWith(kWriter);
  ASSERT_TRUE(client);
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(client->Put(key, Bytes(i, i == 0 ? 60'000 : 100)).ok());
    EXPECT_EQ(*client->Get(key), Bytes(i, i == 0 ? 60'000 : 100));
  }
  ASSERT_TRUE(client->Delete("key1").ok());
  EXPECT_EQ(client->Get("key1").status().code(), Code::kNotFound);
}

TEST_P(TokenTest, ClientWithoutATokenIsRefused) {
  const auto server = Serve(Guarded());
  ExpectDenied(Refusal(""), "asks for a token");
  ExpectDenied(Refusal("the-token-of-nobody"), "does not know this token");
  EXPECT_EQ(Refusal("short").code(), Code::kInvalidArgument);
  EXPECT_TRUE(ConnectWith(kWriter));
}

// The server's pool takes no mirrors, whatever the token.
TEST_P(TokenTest, TokensOfClientsMakeNoMirrorsAndThoseOfMirrorsLetNoClientIn) {
  const auto server = Serve(Guarded());
  ExpectDenied(Refusal(kMirror), "this token is for mirrors alone");
  const auto refusal = [&](const std::string& token) {
    const RawPeer peer(Address(), BytesOf(Proved(token, format::Role::kMirror)));
    EXPECT_FALSE(peer.connected());
    EXPECT_EQ(peer.said().size(), sizeof(format::HelloRefusal));
    const auto said = LoadAs<format::HelloRefusal>(peer.said());
    return std::string(CodeName(static_cast<Code>(said.code))) + ": " + said.message.data();
  };
  for (const std::string& token : {kWriter, kReader}) {
    EXPECT_EQ(refusal(token).find("permission denied: this token makes no mirror"), 0U) << refusal(token);
  }
  EXPECT_NE(refusal(kMirror).find("takes no mirrors"), std::string::npos) << refusal(kMirror);
}

// Otherwise the client would trust any process that takes the server's place.
TEST_P(TokenTest, ClientWithATokenRefusesAServerThatAsksForNone) {
  const auto server = Serve();
  ExpectDenied(Refusal(kWriter), "does not ask for the token");
}

TEST_P(TokenTest, ATokenCanComeFromAFile) {
  const auto server = Serve(Guarded());
  ClientOptions options;
  options.token_file = Path("tokens");
  EXPECT_TRUE(Client::Connect(Address(), options).ok());
  ASSERT_EQ(chmod(Path("tokens").c_str(), 0644), 0);
  ExpectDenied(Client::Connect(Address(), options).status(), "can be read");
  options.token = kWriter;
  EXPECT_EQ(Client::Connect(Address(), options).status().code(), Code::kInvalidArgument) << "both";
}

TEST_P(TokenTest, ReadOnlyTokenReadsEverythingAndChangesNothing) {
  const auto server = Serve(Guarded(2));
  const auto writer = ConnectWith(kWriter);
  ASSERT_TRUE(writer);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(writer->Put("key" + std::to_string(i), Bytes(i, 100)).ok());
  PutOptions expires;
  expires.ttl = std::chrono::milliseconds(1500);
  ASSERT_TRUE(writer->Put("expires", "value", expires).ok());
  const auto reader = ConnectWith(kReader);
  ASSERT_TRUE(reader);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(*reader->Get("key" + std::to_string(i)), Bytes(i, 100));
  EXPECT_EQ(reader->Get("nothing").status().code(), Code::kNotFound);
  size_t told = 0;
  ScanOptions from;
  for (std::optional<uint64_t> cursor = 0; cursor;) {
    from.cursor = *cursor;
    const auto page = reader->Scan(from);
    ASSERT_TRUE(page.ok()) << page.status().ToString();
    told += page->keys.size();
    cursor = page->next;
  }
  EXPECT_EQ(told, 201U);
  // The reader learns about a deadline as others do. It asks the server if it has to.
  EXPECT_TRUE(WaitUntil([&] { return reader->Get("expires").status().code() == Code::kNotFound; }));

  ExpectDenied(reader->Put("key1", "other"), "reading only");
  ExpectDenied(reader->Put("large", std::string(60'000, 'x')), "reading only");
  ExpectDenied(reader->Delete("key1"), "reading only");
  ExpectDenied(reader->Increment("number", 1).status(), "reading only");
  ExpectDenied(reader->Put("key1", "other", PutOptions{kAbsent, {}}).status(), "reading only");
  EXPECT_EQ(*reader->Get("key1"), Bytes(1, 100));
  EXPECT_EQ(reader->stats().reconnects, 0U);
}

TEST_P(TokenTest, RemovedTokenEndsOnlyItsClients) {
  const auto server = Serve(Guarded(2));
  const auto writer = ConnectWith(kWriter);
  const auto reader = ConnectWith(kReader);
  ASSERT_TRUE(writer && reader);
  ASSERT_TRUE(writer->Put("key", "value").ok());
  const std::string another = "a-token-that-is-new";
  Write(kReader + " read-only\n" + another + "\n");
  EXPECT_TRUE(WaitUntil([&] { return writer->Put("key", "late").code() == Code::kPermissionDenied; }));
  ExpectDenied(Refusal(kWriter), "does not know this token");
  ASSERT_TRUE(reader->Get("key").ok());
  EXPECT_EQ(reader->stats().reconnects, 0U);
  const auto newcomer = ConnectWith(another);
  ASSERT_TRUE(newcomer);
  EXPECT_TRUE(newcomer->Put("key", "new").ok());
}

// Each address has a thread that looks at the file. Any of them may see a change first.
TEST_P(TokenTest, TwoQuickTokenChangesReachTheClientsOfAllAddresses) {
  ServerOptions options = Guarded(2);
  options.listen.push_back("shm:" + Path("other"));
  const auto server = Serve(options);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Client>> before;
    How how;
    how.token = kWriter;
    for (const std::string& address : options.listen) {
      before.push_back(*Client::Connect(address, how.options()));
      ASSERT_TRUE(before.back()->Put("key", "value").ok());
    }
    Write("a-token-that-comes-and-goes\n");
    Write("a-token-of-another-client\n");
    for (const auto& client : before) {
      EXPECT_TRUE(WaitUntil([&] { return client->Put("key", "late").code() == Code::kPermissionDenied; })) << round;
    }
    how.token = "a-token-of-another-client";
    for (const std::string& address : options.listen) EXPECT_TRUE(Client::Connect(address, how.options()).ok());
    Write(kWriter + "\n");
    EXPECT_TRUE(WaitUntil([&] { return Refusal(kWriter).ok(); }));
  }
}

// An impostor of the server that is refused, or that refuses, can still write into the memory that the client offered.
// That memory is no part of the next connection.
TEST(TokenOfferTest, EachConnectionOffersNewMemory) {
  const TemporaryFolder folder;
  const std::string path = folder / "socket";
  const UniqueFd listener = *fabric::shm::ListenOn(path);
  std::vector<ino_t> offered;
  std::vector<UniqueFd> kept;  // so that no inode number comes again
  std::thread impostor([&] {
    for (int i = 0; i < 4; ++i) {
      pollfd ready{listener.get(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, 60'000), 1);
      const UniqueFd socket(accept(listener.get(), nullptr, nullptr));
      fabric::shm::Greeting greeting;
      std::vector<UniqueFd> fds;
      Status received(Code::kTimeout);
      EXPECT_TRUE(WaitUntil([&] {
        received = fabric::shm::ReceiveGreeting(socket.get(), &greeting, &fds);
        return received.code() != Code::kTimeout;
      }));
      ASSERT_TRUE(received.ok() && fds.size() == 2) << received.ToString();
      struct stat info {};
      ASSERT_EQ(fstat(fds[1].get(), &info), 0);
      offered.push_back(info.st_ino);
      std::move(fds.begin(), fds.end(), std::back_inserter(kept));
      HelloChallenge challenge{};
      challenge.magic = format::kHelloMagic;
      challenge.protocol_version = format::kProtocolVersion;
      challenge.code = static_cast<uint8_t>(Code::kPermissionDenied);
      challenge.is_challenge = 1;
      challenge.challenge = 1;
      fabric::shm::Greeting answer;
      answer.kind = fabric::shm::Greeting::kReject;
      answer.data_bytes = sizeof(challenge);
      std::memcpy(answer.data.data(), &challenge, sizeof(challenge));
      ASSERT_TRUE(fabric::shm::SendGreeting(socket.get(), answer, {}).ok());
    }
  });
  How how;
  how.token = kWriter;
  ExpectDenied(Client::Connect("shm:" + path, how.options()).status(), "again after 3 proofs");
  impostor.join();
  EXPECT_EQ(std::set(offered.begin(), offered.end()).size(), 4U);
}

// --- Below the client library

TEST_P(TokenTest, ServerRevealsNothingWithoutAProof) {
  const auto server = Serve(Guarded());
  HelloRequest hello = RawPeer::Hello();
  hello.shard = 99;  // not even whether the shard exists
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ChallengeOf(hello).is_challenge, 1);
    hello.challenge = uint64_t{1} << (20 * i);
  }
  HelloRequest wrong = Proved("the-token-of-nobody");
  const RawPeer peer(Address(), BytesOf(wrong));
  EXPECT_FALSE(peer.connected());
  EXPECT_EQ(peer.refusal().code, static_cast<uint8_t>(Code::kPermissionDenied));
}

// With the hash seed, a peer could choose keys that share a place.
TEST_P(TokenTest, HashSeedIsRevealedOnlyAfterAProof) {
  const auto server = Serve(Guarded());
  const RawPeer reader(Address(), BytesOf(Proved(kReader)));
  ASSERT_TRUE(reader.connected());
  const HashSeed seed = reader.hello().hash_seed;
  EXPECT_NE(seed, HashSeed{});
  const RawPeer writer(Address(), BytesOf(Proved(kWriter)));
  EXPECT_EQ(writer.hello().hash_seed, seed) << "it is the pool's";
  const auto tells = [&](std::span<const std::byte> said) {
    const std::string_view text = AsString(said);
    return text.find(AsString(BytesOf(seed[0]))) != text.npos || text.find(AsString(BytesOf(seed[1]))) != text.npos;
  };
  EXPECT_TRUE(tells(writer.said()));
  const HelloRequest nobody = RawPeer::Hello();
  HelloRequest of_another_version = nobody;
  of_another_version.protocol_version = 15;
  for (const HelloRequest& hello : {nobody, Proved("the-token-of-nobody"), of_another_version}) {
    const RawPeer peer(Address(), BytesOf(hello));
    EXPECT_FALSE(peer.connected());
    EXPECT_FALSE(peer.said().empty());
    EXPECT_FALSE(tells(peer.said()));
  }
}

TEST_P(TokenTest, ProofCannotBeUsedAgain) {
  const auto server = Serve(Guarded());
  const HelloRequest hello = Proved(kWriter);
  RawPeer first(Address(), BytesOf(hello));
  ASSERT_TRUE(first.connected());
  EXPECT_EQ(first.hello().read_only, 0);
  const RawPeer second(Address(), BytesOf(hello));
  EXPECT_FALSE(second.connected());
  EXPECT_NE(std::string(second.refusal().message.data()).find("used before"), std::string::npos);
  EXPECT_TRUE(first.Read(format::kPoolRegion, 0, 8)) << "which costs the first nothing";
}

TEST_P(TokenTest, ReadOnlyPeerHasNoRightToWriteAnywhere) {
  const auto server = Serve(Guarded());
  const auto writer = ConnectWith(kWriter);
  ASSERT_TRUE(writer && writer->Put("steady", "value").ok());
  for (const uint32_t region : {0U, 1U, 2U, 3U}) {
    RawPeer peer(Address(), BytesOf(Proved(kReader)));
    ASSERT_TRUE(peer.connected());
    EXPECT_EQ(peer.hello().read_only, 1);
    EXPECT_EQ(peer.hello().placing, static_cast<uint8_t>(format::Placing::kNone));
    ASSERT_EQ(peer.offered().size(), 2U);
    for (const auto& offered : peer.offered()) EXPECT_EQ(offered.access, fabric::Access::kRemoteRead);
    ASSERT_TRUE(peer.Read(format::kPoolRegion, 0, 8));
    peer.Write(region, 4096, "overwritten");
    EXPECT_TRUE(peer.IsClosed()) << region;
  }
  // The reader may ask for nothing but the time.
  for (const uint32_t imm : {0U, 7U, format::kRevokes, format::kAsksTime | RawPeer::kSlots}) {
    RawPeer peer(Address(), BytesOf(Proved(kReader)));
    ASSERT_TRUE(peer.connected());
    peer.PostImm(format::kAsksTime | 3);
    const auto reply = peer.Answer();
    ASSERT_TRUE(reply);
    EXPECT_GT(reply->number, 0U);
    peer.PostImm(imm);
    EXPECT_TRUE(peer.IsClosed()) << imm;
  }
  EXPECT_EQ(*writer->Get("steady"), "value");
  ASSERT_TRUE(writer->Put("steady", "goes on").ok());
}

}  // namespace
}  // namespace erda
