// Peers that break the rules or die in the middle of an operation. No other client notices.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"

namespace erda {
namespace {

using format::Reply;
using format::Request;
using format::RequestOp;

UniqueFd PlainSocket(const std::string& path, int type = SOCK_SEQPACKET) {
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

void SendWithDescriptor(int socket, std::string bytes, int descriptor) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

class Hostile : public EveryPool {
 protected:
  // Expects that other clients still put and get, and that the server counts this number of violations.
  void ExpectServing(Client& client, uint64_t violations) {
    EXPECT_EQ(*client.Get("steady"), "value");
    EXPECT_TRUE(client.Put("steady", "value").ok());
    EXPECT_EQ(CountersOf(client).at("violations"), violations);
    EXPECT_EQ(client.stats().reconnects, 0U);
  }
};

TEST_P(Hostile, GarbageOnTheSocketDisturbsNobody) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  std::vector<UniqueFd> open;
  for (const size_t size : {0, 1, 7, 8, 100, 320, 328, 336, 400, 5000}) {
    open.push_back(PlainSocket(Path("socket")));
    ASSERT_TRUE(open.back());
    const std::string garbage = Bytes(size, size);
    send(open.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    open.push_back(PlainSocket(Path("socket")));
    const UniqueFd descriptor(eventfd(0, EFD_CLOEXEC));
    SendWithDescriptor(open.back().get(), garbage + "x", descriptor.get());
  }
  for (int i = 0; i < 100; ++i) open.push_back(PlainSocket(Path("socket")));  // these send nothing
  EXPECT_FALSE(PlainSocket(Path("socket"), SOCK_STREAM));
  ExpectServing(*client, 0);
  const auto late = Connect();
  ASSERT_NE(late, nullptr);
  ExpectServing(*late, 0);
}

TEST_P(Hostile, HelloOfAnotherProtocolIsRefusedWithAReason) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  const auto refused = [&](const std::function<void(format::HelloRequest&)>& change, const std::string& words) {
    format::HelloRequest hello = RawPeer::Hello();
    change(hello);
    const RawPeer peer(Address(), BytesOf(hello));
    EXPECT_FALSE(peer.connected());
    const format::HelloRefusal refusal = peer.refusal();
    EXPECT_EQ(refusal.code, static_cast<uint8_t>(Code::kInvalidArgument));
    EXPECT_NE(std::string(refusal.message.data()).find(words), std::string::npos) << refusal.message.data();
  };
  refused([](auto& hello) { hello.magic = 5; }, "no Erda client");
  refused([](auto& hello) { hello.protocol_version = 99; }, "version " + std::to_string(format::kProtocolVersion));
  refused([](auto& hello) { hello.shard = 1; }, "no such shard");
  refused([](auto& hello) { hello.shard = 0xffff; }, "no such shard");
  const std::byte little[] = {std::byte{1}};
  EXPECT_FALSE(RawPeer(Address(), little).connected());
  const format::HelloRequest whole = RawPeer::Hello();
  for (const size_t bytes : {sizeof(uint64_t) + sizeof(uint16_t), sizeof(whole) - 1}) {
    const RawPeer peer(Address(), BytesOf(whole).first(bytes));
    EXPECT_FALSE(peer.connected());
    EXPECT_NE(std::string(peer.refusal().message.data()).find("a part of a hello"), std::string::npos) << bytes;
  }
  EXPECT_FALSE(RawPeer(Address(), std::span<const std::byte>()).connected());
  for (const uint32_t slots : {0U, 1U, 100'000U}) {  // the server gives as many slots as it can
    format::HelloRequest hello = RawPeer::Hello();
    hello.slots = slots;
    RawPeer peer(Address(), BytesOf(hello));
    if (slots > RawPeer::kSlots) {
      EXPECT_TRUE(peer.IsClosed()) << "there is no memory for that number of replies";
    } else {
      EXPECT_TRUE(peer.connected());
      EXPECT_EQ(peer.hello().slots, 1U);
    }
  }
  ExpectServing(*client, 1);
}

TEST_P(Hostile, BreakingTheProtocolCostsOnlyTheChannel) {
  ServerOptions options = Options();
  options.shards = 2;
  const auto server = Serve(options);
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  const uint32_t slot_bytes = 16384;

  // A key of shard 0 and a key of shard 1.
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
  const std::string good_rest = key + "....1234";
  const auto with = [&](const std::function<void(Request&)>& change) {
    return [=](RawPeer& peer) {
      Request request = good;
      change(request);
      peer.Post(request, good_rest);
    };
  };
  const auto op = [](RequestOp code) { return static_cast<uint8_t>(code); };
  const std::vector<std::pair<std::string, std::function<void(RawPeer&)>>> breaches = {
      {"operation 0", with([](Request& r) { r.op = 0; })},
      {"operation 12", with([](Request& r) { r.op = 12; })},
      {"staged put without a buffer", with([&](Request& r) { r.op = op(RequestOp::kPutStaged); })},
      {"staged put of nothing without a buffer", with([&](Request& r) {
         r.op = op(RequestOp::kPutStaged);
         r.value_size = 0;
       })},
      {"operation 255", with([](Request& r) { r.op = 255; })},
      {"ack 2", with([](Request& r) { r.ack = 2; })},
      {"condition 2", with([](Request& r) { r.condition = 2; })},
      {"increment by four bytes", with([&](Request& r) { r.op = op(RequestOp::kIncrement); })},
      {"key of 0", with([](Request& r) { r.key_size = 0; })},
      {"key of 1025", with([](Request& r) { r.key_size = 1025; })},
      {"key of 65535", with([](Request& r) { r.key_size = 65535; })},
      {"value beyond the slot", with([&](Request& r) { r.value_size = slot_bytes; })},
      {"value of 4 GiB", with([](Request& r) { r.value_size = UINT32_MAX; })},
      {"reserve of 4 GiB", with([&](Request& r) {
         r.op = op(RequestOp::kReserve);
         r.value_size = UINT32_MAX;
       })},
      {"reserve of a segment", with([&](Request& r) {
         r.op = op(RequestOp::kReserve);
         r.value_size = 8 << 20;
       })},
      {"key of 0 to delete", with([&](Request& r) {
         r.op = op(RequestOp::kDelete);
         r.key_size = 0;
       })},
      {"key of 2000 to report", with([&](Request& r) {
         r.op = op(RequestOp::kReport);
         r.key_size = 2000;
       })},
      {"commit of nothing", with([&](Request& r) { r.op = op(RequestOp::kCommit); })},
      {"commit of anything", with([&](Request& r) {
         r.op = op(RequestOp::kCommit);
         r.key_hash = HashKey(key, hello.hash_seed);
         r.address = 0x7fffffff;
         r.head = UINT32_MAX;
         r.version = 1;
       })},
      {"a chunk of another shard's log", with([&](Request& r) {
         r.op = op(RequestOp::kDelegate);
         r.head = UINT32_MAX;
       })},
      {"delegated put of a segment", with([&](Request& r) {
         r.op = op(RequestOp::kPutDelegated);
         r.value_size = 8 << 20;
       })},
      {"delegated put of what was not placed",
       [&](RawPeer& peer) {
         Request request{};
         request.op = op(RequestOp::kDelegate);
         request.head = hello.geometry.HeadOf(HashKey(key, hello.hash_seed));
         request.version = 200;
         request.value_size = 4096;
         peer.Post(request, "");
         const auto chunk = peer.Answer();
         ASSERT_TRUE(chunk && chunk->header.is_chunk());
         const format::LogAddress at(chunk->address);
         request = good;
         request.op = op(RequestOp::kPutDelegated);
         request.address = format::LogAddress::At(at.slot(), at.offset_in_slot() + format::kChunkObjectsAt).raw();
         request.value_crc = 1;
         peer.Post(request, key);
       }},
      {"another shard's key",
       [&](RawPeer& peer) {
         Request request = good;
         request.key_size = static_cast<uint16_t>(elsewhere.size());
         peer.Post(request, elsewhere + "....1234");
       }},
      {"slot out of range", [](RawPeer& peer) { peer.PostImm(RawPeer::kSlots); }},
      {"slot far out of range", [](RawPeer& peer) { peer.PostImm(UINT32_MAX); }},
      {"empty slot", [](RawPeer& peer) { peer.PostImm(3); }},
      {"the time, with bytes", [](RawPeer& peer) { peer.PostImm(format::kAsksTime | 3, "12345678"); }},
      {"the time, in a slot out of range", [](RawPeer& peer) { peer.PostImm(format::kAsksTime | RawPeer::kSlots); }},
      {"message", [](RawPeer& peer) { peer.PostSend("hello"); }},
      {"empty message", [](RawPeer& peer) { peer.PostSend(""); }},
  };
  uint64_t violations = 0;
  for (const auto& [what, breach] : breaches) {
    SCOPED_TRACE(what);
    RawPeer peer(Address());
    ASSERT_TRUE(peer.connected());
    peer.Post(good, good_rest);
    ASSERT_EQ(peer.Answer()->code, 0);
    breach(peer);
    EXPECT_TRUE(peer.IsClosed());
    ExpectServing(*client, ++violations);
    EXPECT_EQ(*client->Get(key), "1234");
    EXPECT_TRUE(client->Delete(key).ok());
    EXPECT_EQ(client->Get(elsewhere).status().code(), Code::kNotFound);
  }
  // Only the client's sessions are left, one with each shard.
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 2; }));
  EXPECT_EQ(CountersOf(*client).at("keys"), 1U);
  // A message that is no request is in no count of requests.
  const auto activity = client->ServerActivity();
  ASSERT_TRUE(activity.ok());
  uint64_t requests = 0;
  for (const OperationStats& operation : activity->operations) requests += operation.count();
  EXPECT_EQ(activity->fabrics.at(0).requests, requests);
  EXPECT_EQ(activity->fabrics.at(0).violations, violations);
  EXPECT_EQ(activity->fabrics.at(0).connections, 2U);
}

// A client without pool writes sends these messages. rights_test.cc shows that it cannot do more.
TEST_P(Hostile, BreakingTheProtocolOfAStagingBufferCostsOnlyTheChannel) {
  ServerOptions options = Options();
  options.pool_writes = PoolWrites::kNobody;
  options.segment_size = 64 << 10;
  options.region_size = 1 << 20;
  options.staging_bytes = 256 << 10;
  const auto server = Serve(options);
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  ASSERT_TRUE(client->Put("large", Bytes(1, 50'000)).ok());
  const auto buffer = static_cast<uint32_t>(options.staging_bytes);
  Request good{};
  good.op = static_cast<uint8_t>(RequestOp::kPutStaged);
  good.key_size = 3;
  good.value_size = 100;
  good.address = buffer - 100;
  const auto with = [&](const std::function<void(Request&)>& change) {
    return [=](RawPeer& peer) {
      Request request = good;
      change(request);
      peer.Post(request, "key");
    };
  };
  const auto op = [](RequestOp code) { return static_cast<uint8_t>(code); };
  const auto largest = static_cast<uint32_t>(client->max_value_bytes(3));
  const std::vector<std::pair<std::string, std::function<void(RawPeer&)>>> breaches = {
      {"a byte beyond the buffer", with([](Request& r) { r.address += 1; })},
      {"a value that is a byte too long", with([](Request& r) { r.value_size += 1; })},
      {"at the end of the buffer", with([&](Request& r) { r.address = buffer; })},
      {"nothing, at the end of the buffer", with([&](Request& r) {
         r.address = buffer;
         r.value_size = 0;
       })},
      {"far beyond the buffer", with([](Request& r) { r.address = UINT32_MAX; })},
      {"a place and a size that wrap", with([](Request& r) {
         r.address = UINT32_MAX - 50;
         r.value_size = 100;
       })},
      {"a value of 4 GiB", with([](Request& r) {
         r.address = 0;
         r.value_size = UINT32_MAX;
       })},
      {"a value larger than a segment takes", with([&](Request& r) {
         r.address = 0;
         r.value_size = largest + 1;
       })},
      {"the largest value, that expires", with([&](Request& r) {
         r.address = 0;
         r.value_size = largest;
         r.ttl = 1'000'000;
       })},
      {"a key of 0", with([](Request& r) { r.key_size = 0; })},
      {"a key of 1025", with([](Request& r) { r.key_size = 1025; })},
      {"a key of 65535", with([](Request& r) { r.key_size = 65535; })},
      {"ack 2", with([](Request& r) { r.ack = 2; })},
      {"condition 2", with([](Request& r) { r.condition = 2; })},
      {"reserve", with([&](Request& r) { r.op = op(RequestOp::kReserve); })},
      {"delegate", with([&](Request& r) {
         r.op = op(RequestOp::kDelegate);
         r.version = 200;
         r.value_size = 4096;
       })},
      {"delegated put", with([&](Request& r) { r.op = op(RequestOp::kPutDelegated); })},
      {"commit", with([&](Request& r) { r.op = op(RequestOp::kCommit); })},
      {"give back", with([&](Request& r) { r.op = op(RequestOp::kGiveBack); })},
      {"a Write beyond the buffer",
       [&](RawPeer& peer) { peer.Write(format::kStagingRegion, buffer - 3, "over the end"); }},
      {"a Write into the pool", [&](RawPeer& peer) { peer.Write(format::kPoolRegion, 8192, "overwritten"); }},
  };
  const uint64_t others = 2;  // the last two: the fabric does not let them reach the server
  uint64_t violations = 0;
  for (const auto& [what, breach] : breaches) {
    SCOPED_TRACE(what);
    RawPeer peer(Address());
    ASSERT_TRUE(peer.connected());
    peer.Write(format::kStagingRegion, good.address, Bytes(7, 100));
    peer.Post(good, "key");
    ASSERT_EQ(peer.Answer()->code, 0);
    breach(peer);
    EXPECT_TRUE(peer.IsClosed());
    violations += violations + others < breaches.size() ? 1 : 0;
    ExpectServing(*client, violations);
    EXPECT_EQ(*client->Get("key") == Bytes(7, 100), true);
    EXPECT_EQ(*client->Get("large") == Bytes(1, 50'000), true);
  }
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 1; }));
}

// The shard makes the checksum of the bytes that it has copied, whatever they are.
TEST_P(Hostile, ChangingTheStagedBytesDuringTheCopyLeavesAWholeValue) {
  ServerOptions options = Options();
  options.pool_writes = PoolWrites::kNobody;
  const auto server = Serve(options);
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  RawPeer peer(Address());
  Request put{};
  put.op = static_cast<uint8_t>(RequestOp::kPutStaged);
  put.key_size = 3;
  put.value_size = 240'000;
  const std::string ones(100'000, '1');
  const std::string twos(100'000, '2');
  for (int round = 0; round < 40; ++round) {
    for (uint32_t slot = 0; slot < RawPeer::kSlots; ++slot) {
      put.id = slot;
      peer.Post(put, "key", slot);
    }
    for (int i = 0; i < 10; ++i) {
      peer.Write(format::kStagingRegion, static_cast<uint64_t>(i) * 14'000, ones);
      peer.Write(format::kStagingRegion, static_cast<uint64_t>(i) * 13'000, twos);
    }
    for (uint32_t slot = 0; slot < RawPeer::kSlots; ++slot) {
      const auto reply = peer.Answer();
      ASSERT_TRUE(reply && reply->code == 0);
    }
    const auto value = client->Get("key");
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_EQ(value->size(), 240'000U);
    EXPECT_EQ(value->find_first_not_of(std::string("12\0", 3)), std::string::npos);
  }
  ExpectServing(*client, 0);
}

// Each region has a reservation and is dead otherwise. A put without room waits for these reservations.
TEST_P(Hostile, SecondRequestInAWaitingSlotCostsTheChannel) {
  ServerOptions options = SmallOptions();
  const auto server = Serve(options);
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  ASSERT_TRUE(client->Put("gone", "value").ok());
  RawPeer holder(Address());
  const std::string large = Bytes(1, 10'000);
  for (Status put; put.ok();) {
    holder.Post(RawPeer::ReserveRequest("held", 100, Ack::kPlaced), "held");
    if (holder.Answer()->code != 0) break;
    for (int i = 0; i < 10 && put.ok(); ++i) put = client->Put("large", large);
    if (!put.ok()) ExpectFails(put, Code::kResourceExhausted, "log");
  }
  // The delete changes the log, so that the next put waits for room again.
  ASSERT_TRUE(client->Delete("gone").ok());
  Request put{};
  put.op = static_cast<uint8_t>(RequestOp::kPutInline);
  put.key_size = 3;
  put.value_size = 10'000;
  const std::function<void(RawPeer&)> seconds[] = {
      [&](RawPeer& peer) { peer.Post(put, "key...." + large); },
      [](RawPeer& peer) { peer.PostImm(format::kAsksTime); },
  };
  uint64_t violations = 0;
  for (const auto& second : seconds) {
    const uint64_t delayed = CountersOf(*client).at("puts_delayed");
    RawPeer peer(Address());
    peer.Post(put, "key...." + large);
    EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("puts_delayed") == delayed + 1; })) << violations;
    second(peer);
    EXPECT_TRUE(peer.IsClosed());
    EXPECT_EQ(CountersOf(*client).at("violations"), ++violations);
  }
  EXPECT_EQ(*client->Get("steady"), "value");
  holder.Leave();
  EXPECT_TRUE(client->Put("steady", "value").ok()) << "there is room again";
  EXPECT_TRUE(client->Put("large", large).ok());
  EXPECT_EQ(client->stats().reconnects, 0U);
}

TEST_P(Hostile, RandomRequestsDisturbNobody) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RawPeer peer(Address());
    ASSERT_TRUE(peer.connected());
    for (int i = 0; i < 8; ++i) {
      Request request{};
      const std::string noise = Bytes(random.Next(), sizeof(request));
      std::memcpy(&request, noise.data(), sizeof(request));
      request.op = static_cast<uint8_t>(random.Uniform(12));
      request.ack &= 1;
      if (random.Chance(0.9)) request.condition = static_cast<uint8_t>(random.Uniform(2));
      if (random.Chance(0.5)) request.version = 0;
      if (random.Chance(0.9)) request.key_size = static_cast<uint16_t>(random.Between(1, 40));
      if (random.Chance(0.9)) request.value_size = static_cast<uint32_t>(random.Uniform(2000));
      peer.Post(request, Bytes(random.Next(), 2100), static_cast<uint32_t>(i));
      if (!peer.Answer()) break;
    }
    peer.Leave();
    EXPECT_EQ(*client->Get("steady"), "value");
  }
  EXPECT_TRUE(client->Put("steady", "other").ok());
  EXPECT_TRUE(WaitUntil([&] {
    const Counters now = CountersOf(*client);
    return now.at("clients") == 1 && now.at("in_flight") == 0;
  }));
  EXPECT_EQ(client->stats().reconnects, 0U);
}

TEST_P(Hostile, PeerReachesOnlyOfferedMemory) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  const uint64_t pool_size = Options().pool_size;
  const auto breach = [&](const std::function<void(RawPeer&)>& reach) {
    RawPeer peer(Address());
    ASSERT_TRUE(peer.connected());
    ASSERT_TRUE(peer.Read(format::kPoolRegion, pool_size - 8, 8).has_value());
    reach(peer);
    EXPECT_TRUE(peer.IsClosed());
    EXPECT_EQ(*client->Get("steady"), "value");
  };
  breach([&](RawPeer& peer) { EXPECT_FALSE(peer.Read(format::kPoolRegion, pool_size - 7, 8)); });
  breach([&](RawPeer& peer) { EXPECT_FALSE(peer.Read(format::kPoolRegion, UINT64_MAX - 3, 8)); });
  breach([&](RawPeer& peer) { EXPECT_FALSE(peer.Read(7, 0, 8)); });
  breach([&](RawPeer& peer) { peer.Write(format::kPoolRegion, 0, "overwritten"); });
  breach([&](RawPeer& peer) { peer.Write(format::kControlRegion, 0, "overwritten"); });
  breach([&](RawPeer& peer) { peer.Write(format::kRequestRegion, RawPeer::kSlots * 16384 - 3, "over the end"); });
  ExpectServing(*client, 0);
}

// --- Reservations whose writer dies

// The shard reads a put that waited for room again before it serves it. Its client can still write there.
TEST_P(Hostile, RewrittenPutThatWaitsForRoomIsCheckedAgain) {
  ServerOptions options = SmallOptions();
  const auto server = Serve(options);
  const auto client = Connect();
  ASSERT_TRUE(client->Put("steady", "value").ok());
  int keys = 0;
  while (client->Put("key" + std::to_string(keys), Bytes(1, 3000)).ok()) ++keys;
  ASSERT_GT(keys, 100);
  uint64_t closed = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client->Delete("key" + std::to_string(i)).ok());  // the log may have room again
    RawPeer peer(Address());
    Request put{};
    put.op = static_cast<uint8_t>(RequestOp::kPutInline);
    put.key_size = 4;
    put.value_size = 3000;
    for (uint32_t slot = 0; slot < 4; ++slot) {
      put.id = slot;
      peer.Post(put, "keyX" + Bytes(slot, 3004), slot);
    }
    for (uint32_t slot = 0; slot < 4; ++slot) {
      Request other{};
      other.op = slot % 2 == 0 ? static_cast<uint8_t>(RequestOp::kCommit) : 99;
      peer.Write(format::kRequestRegion, uint64_t{slot} * peer.hello().slot_bytes, AsString(BytesOf(other)));
    }
    for (int answers = 0; answers < 4 && peer.Answer(); ++answers) {
    }
    closed += peer.connected() ? 0 : 1;
  }
  EXPECT_GT(closed, 0U) << "none had to wait";
  ExpectServing(*client, CountersOf(*client).at("violations"));
  EXPECT_EQ(CountersOf(*client).at("violations"), closed);
}

class DeadWriter : public EveryPool {
 protected:
  // Reserves space for this value as a peer.
  void Reserve(RawPeer& peer, const std::string& key, size_t size, Ack ack, Reply* reply) {
    peer.Post(RawPeer::ReserveRequest(key, static_cast<uint32_t>(size), ack), key);
    const auto answer = peer.Answer();
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->code, 0);
    *reply = *answer;
  }
  // Waits until nothing of the peer is left after its channel has ended.
  void WaitForItsEnd(Client& client) {
    EXPECT_TRUE(WaitUntil([&] {  // the counters do not change all at once
      const Counters now = CountersOf(client);
      return now.at("clients") == 1 && now.at("in_flight") == 0;
    }));
    EXPECT_EQ(CountersOf(client).at("violations"), 0U);
  }
};

TEST_P(DeadWriter, WriterThatDiesBeforeItsWriteLeavesTheOlderValue) {
  const auto server = Serve();
  const auto client = Connect();
  for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
    ASSERT_TRUE(client->Put("key", "older").ok());
    const uint64_t taken_back = CountersOf(*client).at("taken_back");
    const uint64_t older = client->stats().older_versions;
    RawPeer peer(Address());
    Reply reply{};
    Reserve(peer, "key", 3000, ack, &reply);
    EXPECT_EQ(*client->Get("key"), "older") << "while its writer lives";
    EXPECT_GT(client->stats().older_versions, older);
    EXPECT_EQ(CountersOf(*client).at("in_flight"), 1U);
    peer.Leave();
    WaitForItsEnd(*client);
    EXPECT_EQ(CountersOf(*client).at("taken_back"), taken_back + 1);
    EXPECT_EQ(*client->Get("key"), "older");
    ASSERT_TRUE(client->Put("key", "newer").ok());
    EXPECT_EQ(*client->Get("key"), "newer");
  }
}

TEST_P(DeadWriter, DeadWriterOfANewKeyLeavesNothing) {
  const auto server = Serve();
  const auto client = Connect();
  RawPeer peer(Address());
  Reply reply{};
  Reserve(peer, "key", 100, Ack::kPersisted, &reply);
  EXPECT_EQ(client->Get("key").status().code(), Code::kNotFound);
  EXPECT_EQ(client->Delete("key").code(), Code::kNotFound);
  EXPECT_EQ(CountersOf(*client).at("keys"), 1U);
  peer.Leave();
  WaitForItsEnd(*client);
  EXPECT_EQ(CountersOf(*client).at("keys"), 0U);
  EXPECT_EQ(client->Get("key").status().code(), Code::kNotFound);
}

TEST_P(DeadWriter, WriterThatDiesDuringItsWriteLeavesTheOlderValue) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "older").ok());
  for (const size_t written : {0, 1, 4, 5, 2000, 3003}) {
    SCOPED_TRACE(std::to_string(written) + " of 3004 bytes");
    RawPeer peer(Address());
    Reply reply{};
    Reserve(peer, "key", 3000, Ack::kPlaced, &reply);
    const std::string body = peer.Body(reply, Bytes(1, 3000));
    peer.Write(format::kPoolWriteRegion, peer.BodyOffset(reply), body.substr(0, written));
    EXPECT_EQ(*client->Get("key"), "older");
    peer.Leave();
    WaitForItsEnd(*client);
    EXPECT_EQ(*client->Get("key"), "older");
  }
  EXPECT_EQ(CountersOf(*client).at("taken_back"), 6U);
}

TEST_P(DeadWriter, WriterThatDiesAfterItsWriteLeavesTheNewValue) {
  const auto server = Serve();
  const auto client = Connect();
  for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
    ASSERT_TRUE(client->Put("key", "older").ok());
    RawPeer peer(Address());
    Reply reply{};
    Reserve(peer, "key", 3000, ack, &reply);
    peer.Write(format::kPoolWriteRegion, peer.BodyOffset(reply), peer.Body(reply, Bytes(1, 3000)));
    if (ack == Ack::kPlaced) {
      EXPECT_EQ(*client->Get("key") == Bytes(1, 3000), true);
    }
    peer.Leave();
    WaitForItsEnd(*client);
    EXPECT_EQ(*client->Get("key") == Bytes(1, 3000), true);
  }
  EXPECT_EQ(CountersOf(*client).at("taken_back"), 0U);
}

TEST_P(DeadWriter, DeadWriterOfADeletedKeyBringsNothingBack) {
  const auto server = Serve();
  const auto client = Connect();
  for (const bool writes : {false, true}) {
    ASSERT_TRUE(client->Put("key", "older").ok());
    RawPeer peer(Address());
    Reply reply{};
    Reserve(peer, "key", 3000, Ack::kPersisted, &reply);
    ASSERT_TRUE(client->Delete("key").ok());
    if (writes) peer.Write(format::kPoolWriteRegion, peer.BodyOffset(reply), peer.Body(reply, Bytes(1, 3000)));
    EXPECT_EQ(client->Get("key").status().code(), Code::kNotFound);
    peer.Leave();
    WaitForItsEnd(*client);
    EXPECT_EQ(client->Get("key").status().code(), Code::kNotFound);
    EXPECT_EQ(CountersOf(*client).at("keys"), 0U);
  }
}

TEST_P(DeadWriter, DeadWriterOfANewerVersionLeavesALivingOnesVersion) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "older").ok());
  RawPeer living(Address());
  Reply first{};
  Reserve(living, "key", 500, Ack::kPlaced, &first);
  {
    RawPeer dying(Address());
    Reply second{};
    Reserve(dying, "key", 600, Ack::kPlaced, &second);
    EXPECT_EQ(*client->Get("key"), "older");
  }
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 2; }));
  EXPECT_EQ(*client->Get("key"), "older");
  living.Write(format::kPoolWriteRegion, living.BodyOffset(first), living.Body(first, Bytes(2, 500)));
  EXPECT_EQ(*client->Get("key") == Bytes(2, 500), true);
  living.Leave();
  WaitForItsEnd(*client);
  EXPECT_EQ(*client->Get("key") == Bytes(2, 500), true);
}

TEST_P(DeadWriter, ClientCannotCommitAnotherClientsPut) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "older").ok());
  RawPeer writer(Address());
  Reply reply{};
  Reserve(writer, "key", 100, Ack::kPersisted, &reply);
  RawPeer other(Address());
  other.Post(RawPeer::CommitRequest(reply), "");
  EXPECT_TRUE(other.IsClosed());
  if (GetParam() == PoolKind::kPowerSafe) {
    writer.Post(RawPeer::CommitRequest(reply), "");
    EXPECT_EQ(writer.Answer()->reason, static_cast<uint8_t>(format::Reason::kNotWhole));
    writer.Write(format::kPoolWriteRegion, writer.BodyOffset(reply), writer.Body(reply, Bytes(1, 100)));
    EXPECT_EQ(*client->Get("key"), "older") << "not acknowledged yet";
    writer.Post(RawPeer::CommitRequest(reply), "");
    EXPECT_EQ(writer.Answer()->code, 0);
    EXPECT_EQ(*client->Get("key") == Bytes(1, 100), true);
    writer.Post(RawPeer::CommitRequest(reply), "");
    EXPECT_TRUE(writer.IsClosed()) << "it was committed already";
  }
}

INSTANTIATE_TEST_SUITE_P(E2e, Hostile, kEveryPool, PoolName);
INSTANTIATE_TEST_SUITE_P(E2e, DeadWriter, kEveryPool, PoolName);

// --- Connecting

class Connecting : public E2eTest {};

TEST_F(Connecting, ConnectingToAnotherKindOfSocketFails) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, Path("stream").data(), Path("stream").size());
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd.get(), 1), 0);
  const auto client = Client::Connect("shm:" + Path("stream"));
  ASSERT_FALSE(client.ok());
  EXPECT_NE(client.status().message().find(Path("stream")), std::string_view::npos) << client.status().ToString();
}

TEST_F(Connecting, ConnectingToASocketThatAnswersNonsenseFails) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, Path("odd").data(), Path("odd").size());
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd.get(), 8), 0);
  for (const size_t size : {1, 328, 4000}) {
    std::thread peer([&] {
      const UniqueFd accepted(accept(fd.get(), nullptr, nullptr));
      const std::string nonsense = Bytes(size, size);
      send(accepted.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
      char buffer[8];
      while (recv(accepted.get(), buffer, sizeof(buffer), 0) > 0) {
      }
    });
    const auto client = Client::Connect("shm:" + Path("odd"));
    ExpectFails(client.status(), Code::kInvalidArgument, Path("odd"));
    peer.join();
  }
  // Hangs up at once, sometimes before the client has sent a greeting.
  for (int i = 0; i < 100; ++i) {
    std::thread peer([&] { const UniqueFd accepted(accept(fd.get(), nullptr, nullptr)); });
    ExpectFails(Client::Connect("shm:" + Path("odd")).status(), Code::kUnavailable, Path("odd"));
    peer.join();
  }
}

TEST_F(Connecting, ConnectingToAFullServerFailsUntilAClientLeaves) {
  ServerOptions options = Options(PoolKind::kDram);
  options.max_clients = 2;
  options.shards = 2;
  const auto server = Serve(PoolKind::kDram, options);
  const auto first = Connect();
  auto second = Connect();
  for (int i = 0; i < 5; ++i) {
    const auto third = Client::Connect(Address());
    ExpectFails(third.status(), Code::kResourceExhausted, "2 clients");
  }
  EXPECT_TRUE(first->Put("key", "value").ok());
  EXPECT_EQ(*second->Get("key"), "value");
  second.reset();
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*first).at("clients") == 2; }));  // one session of each shard
  const auto next = Connect();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(*next->Get("key"), "value");
}

TEST_F(Connecting, ConnectingAndLeavingLeaksNothing) {
  ServerOptions options = Options(PoolKind::kDram);
  options.max_clients = 4;
  const auto server = Serve(PoolKind::kDram, options);
  const auto steady = Connect();
  for (int i = 0; i < 100; ++i) {
    const auto client = Connect();
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(client->Put("key", std::to_string(i)).ok());
    ASSERT_TRUE(WaitUntil([&] { return CountersOf(*steady).at("clients") <= 3; }));
  }
  EXPECT_EQ(*steady->Get("key"), "99");
}

}  // namespace
}  // namespace erda
