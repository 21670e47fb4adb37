// The memory that a client of RDMA can write to, with keys that it was told and with other keys.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "e2e/raw_peer.h"
#include "lab/fixture.h"
#include "lab/raw_rdma_peer.h"

namespace erda {
namespace {

class RightsLab : public LabTest {
 protected:
  void SetUp() override {
    LabTest::SetUp();
    if (!HasFatalFailure()) WipeDevice();
  }
  // Returns the offset of these bytes in the pool. Finds them by Reads of a client.
  static uint64_t OffsetOf(std::string_view bytes) {
    RawPeer reader(Address());
    constexpr size_t kPiece = 512 << 10;
    const uint64_t size = reader.offered()[format::kPoolRegion].size;
    for (uint64_t at = 0; at + kPiece <= size; at += kPiece - bytes.size()) {
      const auto piece = reader.Read(format::kPoolRegion, at, kPiece);
      if (!piece) break;
      const size_t found = piece->find(bytes);
      if (found != std::string::npos) return at + found;
    }
    ADD_FAILURE() << "it is not in the pool";
    return 0;
  }
};

// The client tries each region that it was offered.
TEST_F(RightsLab, AClientWritesNowhereIntoThePool) {
  for (const std::string who : {"same-user", "nobody"}) {
    SCOPED_TRACE(who);
    WipeDevice();
    const auto server = StartServer({"--pool-writes", who});
    const auto honest = Connect();
    ASSERT_TRUE(honest);
    const std::string settled(3000, 's');
    ASSERT_TRUE(honest->Put("settled", settled).ok());
    const uint64_t at = OffsetOf(settled);
    {
      RawPeer peer(Address());
      ASSERT_EQ(peer.offered().size(), 4U);
      EXPECT_EQ(peer.offered()[format::kPoolRegion].access, fabric::Access::kRemoteRead);
      EXPECT_EQ(peer.offered()[format::kControlRegion].access, fabric::Access::kRemoteRead);
      EXPECT_LT(peer.offered()[format::kStagingRegion].size, peer.offered()[format::kPoolRegion].size);
    }
    struct Place {
      uint32_t region;
      uint64_t offset;
    };
    for (const auto& [region, offset] : {Place{format::kPoolRegion, at},
                                         {format::kPoolRegion, 0},
                                         {format::kControlRegion, 0},
                                         {format::kStagingRegion, uint64_t{1} << 30}}) {
      SCOPED_TRACE(std::to_string(region) + " at " + std::to_string(offset));
      RawPeer peer(Address());
      peer.Write(region, offset, "overwritten");
      EXPECT_TRUE(peer.IsClosed());
      EXPECT_EQ(peer.error().code(), Code::kPermissionDenied) << peer.error().ToString();
      const auto found = honest->Get("settled");
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      EXPECT_TRUE(*found == settled);
    }
    EXPECT_TRUE(honest->Put("afterwards", std::string(50'000, 'a')).ok());
    EXPECT_EQ(honest->stats().reconnects, 0U);
    StopServer(*server);
  }
}

// --- Windows

class WindowLab : public RightsLab {
 protected:
  // A hostile client with a chunk and the key of its window.
  struct Delegated {
    RawPeer peer{Address()};
    format::Reply chunk{};
    uint64_t first = 0;  // The offset of the first byte that the client may write.
    uint64_t end = 0;
    uint32_t key = 0;
  };
  static std::unique_ptr<Delegated> Delegate() {
    auto made = std::make_unique<Delegated>();
    EXPECT_EQ(made->peer.hello().placing, static_cast<uint8_t>(format::Placing::kWindow));
    made->peer.Post(RawPeer::DelegateRequest(65'536), "");
    const auto chunk = made->peer.Answer();
    EXPECT_TRUE(chunk && chunk->code == static_cast<uint8_t>(Code::kOk));
    if (!chunk) return made;
    made->chunk = *chunk;
    const uint64_t begin = made->peer.OffsetOf(*chunk);
    made->first = begin + format::kChunkObjectsAt;
    made->end = begin + SpaceOf(chunk->header);
    made->key = static_cast<uint32_t>(chunk->number);
    return made;
  }
  static format::HelloRequest HelloWith(const std::string& token) { return RawPeer::Proved(Address(), token).value(); }
  static void ExpectDenied(RawPeer& peer, uint64_t offset, uint32_t key) {
    RawPeer onlooker(Address());
    const auto before = onlooker.Read(format::kPoolRegion, offset, 11);
    peer.Write(format::kPoolRegion, offset, "overwritten", key);
    EXPECT_TRUE(peer.IsClosed());
    EXPECT_EQ(peer.error().code(), Code::kPermissionDenied) << peer.error().ToString();
    EXPECT_EQ(onlooker.Read(format::kPoolRegion, offset, 11), before);
    EXPECT_NE(before, "overwritten");
  }
};

TEST_F(WindowLab, LargeValuesGoThroughWindows) {
  const auto server = StartServer();
  for (const PutPath path : {PutPath::kDelegate, PutPath::kAuto}) {
    ClientOptions options;
    options.put_path = path;
    const auto client = Connect(options);
    const auto reader = Connect();
    ASSERT_TRUE(client && reader);
    EXPECT_EQ(InfoOf(*client)["placing"], "window");
    const uint64_t before = std::stoull(InfoOf(*client)["puts_delegated"]);
    for (int i = 0; i < 200; ++i) {
      const std::string key = "key " + std::to_string(i % 7);
      const std::string value(20'000 + 100 * i, static_cast<char>('a' + i % 26));
      const Status put = client->Put(key, value);
      ASSERT_TRUE(put.ok()) << i << ": " << put.ToString();
      const auto found = reader->Get(key);
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      ASSERT_TRUE(*found == value) << i;
    }
    // The shard revokes a chunk that rests, and the next put takes another way. On a busy machine that happens often.
    EXPECT_GT(std::stoull(InfoOf(*client)["puts_delegated"]), before + 50);
    EXPECT_EQ(client->stats().reconnects, 0U);
    EXPECT_EQ(InfoOf(*client)["violations"], "0");
  }
  StopServer(*server);
}

TEST_F(WindowLab, AClientWritesIntoItsOwnChunkAlone) {
  const auto server = StartServer();
  const auto honest = Connect();
  ASSERT_TRUE(honest);
  const std::string settled(3000, 's');
  ASSERT_TRUE(honest->Put("settled", settled).ok());
  const uint64_t settled_at = OffsetOf(settled);
  using Tries = std::vector<std::pair<const char*, std::function<void(Delegated&, Delegated&)>>>;
  const Tries tries = {
      {"a settled object", [&](Delegated& mine, Delegated&) { ExpectDenied(mine.peer, settled_at, mine.key); }},
      {"by the pool's key", [&](Delegated& mine, Delegated&) { ExpectDenied(mine.peer, mine.first, 0); }},
      {"the chunk's header", [](Delegated& mine, Delegated&) { ExpectDenied(mine.peer, mine.first - 1, mine.key); }},
      {"behind the chunk", [](Delegated& mine, Delegated&) { ExpectDenied(mine.peer, mine.end - 10, mine.key); }},
      {"another's chunk", [](Delegated& mine, Delegated& other) { ExpectDenied(mine.peer, other.first, mine.key); }},
      {"another's key", [](Delegated& mine, Delegated& other) { ExpectDenied(mine.peer, other.first, other.key); }},
      {"after it was given back",
       [&](Delegated& mine, Delegated&) {
         mine.peer.Post(RawPeer::GiveBackRequest(mine.chunk), "");
         ASSERT_TRUE(mine.peer.Answer());
         ASSERT_TRUE(WaitUntil([&] { return InfoOf(*honest)["chunks"] == "1"; }));
         ExpectDenied(mine.peer, mine.first, mine.key);
       }},
  };
  for (const auto& [name, run] : tries) {
    SCOPED_TRACE(name);
    const auto mine = Delegate();
    const auto other = Delegate();
    for (Delegated* each : {mine.get(), other.get()}) {
      each->peer.Write(format::kPoolRegion, each->first, "its own", each->key);
      EXPECT_EQ(each->peer.Read(format::kPoolRegion, each->first, 7), "its own");
    }
    run(*mine, *other);
    other->peer.Write(format::kPoolRegion, other->end - 7, "goes on", other->key);
    EXPECT_EQ(other->peer.Read(format::kPoolRegion, other->end - 7, 7), "goes on");
    const auto found = honest->Get("settled");
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_TRUE(*found == settled);
  }
  EXPECT_TRUE(honest->Put("afterwards", std::string(50'000, 'a')).ok());
  EXPECT_EQ(honest->stats().reconnects, 0U);
  StopServer(*server);
}

// The first put in the next chunk ends the chunk before. From then on no client writes to the settled values there.
TEST_F(WindowLab, AFullChunkIsClosed) {
  const auto server = StartServer();
  const auto honest = Connect();
  ASSERT_TRUE(honest);
  const auto mine = Delegate();
  const std::string key = "key";
  const auto put_in = [&](const format::Reply& chunk, uint64_t first, uint32_t window, const std::string& value) {
    mine->peer.Write(format::kPoolRegion, first + format::ValueOffset(format::LabelSize(key.size(), false)), value,
                     window);
    const auto address = format::LogAddress(chunk.address);
    format::Request request{};
    request.op = static_cast<uint8_t>(format::RequestOp::kPutDelegated);
    request.key_size = static_cast<uint16_t>(key.size());
    request.value_size = static_cast<uint32_t>(value.size());
    request.id = 11;
    request.address = format::LogAddress::At(address.slot(), address.offset_in_slot() + format::kChunkObjectsAt).raw();
    request.value_crc = Crc32c(0, AsBytes(value));
    // RawPeer has one buffer. The test waits until the bytes of the Write are sent.
    EXPECT_TRUE(mine->peer.Read(format::kPoolRegion, first, 1));
    mine->peer.Post(request, key);
    const auto answer = mine->peer.Answer();
    return answer ? Code{answer->code} : Code::kUnavailable;
  };
  ASSERT_EQ(put_in(mine->chunk, mine->first, mine->key, "first"), Code::kOk);
  EXPECT_EQ(*honest->Get(key), "first");
  mine->peer.Post(RawPeer::DelegateRequest(65'536), "");
  const auto next = mine->peer.Answer();
  ASSERT_TRUE(next && next->code == static_cast<uint8_t>(Code::kOk));
  ASSERT_EQ(put_in(*next, mine->peer.OffsetOf(*next) + format::kChunkObjectsAt, static_cast<uint32_t>(next->number),
                   "second"),
            Code::kOk);
  ASSERT_TRUE(WaitUntil([&] { return InfoOf(*honest)["chunks"] == "1"; }));
  ExpectDenied(mine->peer, mine->first, mine->key);
  EXPECT_EQ(*honest->Get(key), "second");
  ASSERT_TRUE(WaitUntil([&] { return InfoOf(*honest)["chunks"] == "0"; })) << "it is gone, and its windows with it";
  StopServer(*server);
}

TEST_F(WindowLab, AReaderWritesNowhereByAnothersKey) {
  const std::string tokens = std::filesystem::temp_directory_path() / "erda-lab-rights-tokens";
  std::ofstream(tokens) << "the-token-of-a-reader read-only\nthe-token-of-a-writer\n";
  std::filesystem::permissions(tokens, std::filesystem::perms::owner_read);
  const auto server = StartServer({"--token-file", tokens});
  const auto with = [](const std::string& token) {
    return std::make_unique<RawPeer>(Address(), BytesOf(HelloWith(token)));
  };
  const auto writer = with("the-token-of-a-writer");
  ASSERT_TRUE(writer->connected());
  writer->Post(RawPeer::DelegateRequest(65'536), "");
  const auto chunk = writer->Answer();
  ASSERT_TRUE(chunk && chunk->code == static_cast<uint8_t>(Code::kOk));
  const uint64_t first = writer->OffsetOf(*chunk) + format::kChunkObjectsAt;
  const auto key = static_cast<uint32_t>(chunk->number);
  for (const uint32_t tried : {0U, key}) {
    const auto reader = with("the-token-of-a-reader");
    ASSERT_TRUE(reader->connected());
    ASSERT_EQ(reader->offered().size(), 2U) << "the pool and the control block";
    reader->Write(format::kPoolRegion, first, "overwritten", tried);
    EXPECT_TRUE(reader->IsClosed());
    EXPECT_EQ(reader->error().code(), Code::kPermissionDenied) << reader->error().ToString();
    EXPECT_EQ(writer->Read(format::kPoolRegion, first, 11), std::string(11, '\0'));
  }
  writer->Write(format::kPoolRegion, first, "goes on", key);
  EXPECT_EQ(writer->Read(format::kPoolRegion, first, 7), "goes on");
  StopServer(*server);
  std::filesystem::remove(tokens);
}

// The reader knows the keys of all regions that a writer was offered, as if it had guessed them. These are the request
// slots, and the staging buffer, or the pool where that is allowed. All regions are in one process, so the addresses
// that one client learns are right for the other.
TEST_F(WindowLab, AReaderWritesNowhereByAnyKey) {
  const std::string tokens = std::filesystem::temp_directory_path() / "erda-lab-rights-tokens";
  std::ofstream(tokens) << "the-token-of-a-reader read-only\nthe-token-of-a-writer\n";
  std::filesystem::permissions(tokens, std::filesystem::perms::owner_read);
  for (const std::string who : {"same-user", "everybody"}) {
    SCOPED_TRACE(who);
    WipeDevice();
    const auto server = StartServer({"--token-file", tokens, "--pool-writes", who});
    const auto hello = HelloWith("the-token-of-a-writer");
    std::vector<std::byte> knock(sizeof(fabric::verbs::Knock));
    const fabric::verbs::Knock head{.data_bytes = sizeof(hello), .message_depth = 64};
    std::memcpy(knock.data(), &head, sizeof(head));
    const auto bytes = BytesOf(hello);
    knock.insert(knock.end(), bytes.begin(), bytes.end());
    auto writer = RawRdmaPeer::Connect(Address(), knock);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    (*writer)->Send(BytesOf((*writer)->GreetingWithRegion()));
    ASSERT_TRUE(WaitUntil([&] { return (*writer)->greeted(); }));
    const fabric::verbs::Greeting& told = (*writer)->greeting();
    ASSERT_EQ(told.regions, 4);
    const uint64_t pool = told.region[format::kPoolRegion].address;
    for (const uint32_t region : {format::kRequestRegion, format::kStagingRegion}) {
      SCOPED_TRACE(region);
      const auto& target = told.region[region];
      ASSERT_EQ(target.access, static_cast<uint32_t>(fabric::Access::kRemoteReadWrite));
      // The queue pair of another writer is in the domain of the key. So the Write reaches the region.
      RawPeer other(Address(), BytesOf(HelloWith("the-token-of-a-writer")));
      ASSERT_TRUE(other.connected());
      other.Write(format::kPoolRegion, target.address + 64 - pool, "by a writer", target.key);
      EXPECT_TRUE(other.Read(format::kPoolRegion, 0, 8)) << "it goes on";
      RawPeer reader(Address(), BytesOf(HelloWith("the-token-of-a-reader")));
      ASSERT_TRUE(reader.connected());
      EXPECT_TRUE(reader.Read(format::kPoolRegion, 0, 8)) << "it reads";
      reader.Write(format::kPoolRegion, target.address + 64 - pool, "overwritten", target.key);
      EXPECT_TRUE(reader.IsClosed());
      EXPECT_EQ(reader.error().code(), Code::kPermissionDenied) << reader.error().ToString();
      EXPECT_FALSE((*writer)->closed());
    }
    StopServer(*server);
  }
  std::filesystem::remove(tokens);
}

// The reserve path works if the operator allows it.
TEST_F(RightsLab, OnlyPermittedClientsReserve) {
  ClientOptions reserves;
  reserves.put_path = PutPath::kReserve;
  for (const std::string who : {"same-user", "everybody"}) {
    WipeDevice();
    const auto server = StartServer({"--pool-writes", who});
    const auto client = Connect(reserves);
    ASSERT_TRUE(client);
    EXPECT_EQ(client->Put("key", "value").code(), who == "everybody" ? Code::kOk : Code::kPermissionDenied);
    StopServer(*server);
  }
}

}  // namespace
}  // namespace erda
