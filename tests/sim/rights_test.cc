// The rights of a client of another user over the simulated fabric: it writes its staging buffer, and reads.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/hello.h"
#include "format/messages.h"
#include "server/page_pool.h"
#include "sim/ports.h"

namespace erda::sim {
namespace {

using fabric::OpKind;
using format::Counter;
using format::Placing;

// A client below the library.
struct Raw {
  Raw(fabric::SimNetwork& network, uint32_t user)
      : fabric(network.CreateFabric("raw", nullptr, user)),
        queue(*fabric->CreateQueue()),
        region(*fabric->Register({memory, -1, -1}, fabric::Access::kRemoteReadWrite)) {
    format::HelloRequest hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.slots = 2;
    fabric::Region* const offer[] = {region.get()};
    channel = *fabric->Connect("sim:port0", {queue.get(), offer, BytesOf(hello), 64});
  }
  [[nodiscard]] format::HelloReply hello() const { return LoadAs<format::HelloReply>(channel->peer_data()); }
  void Poll() {
    std::array<fabric::Completion, 16> completions;
    const size_t n = queue->Poll(completions);
    for (const fabric::Completion& completion : std::span(completions).first(n)) {
      closed |= completion.kind == OpKind::kClosed;
      answered |= completion.kind == OpKind::kReceiveImm;
      if (completion.kind == OpKind::kWrite) code = completion.code;
    }
  }
  void Write(uint32_t to, uint64_t offset, std::string_view bytes, uint32_t window = 0) {
    std::memcpy(memory.data() + 4096, bytes.data(), bytes.size());
    fabric::WorkRequest work;
    work.kind = OpKind::kWrite;
    work.local = std::span(memory).subspan(4096, bytes.size());
    work.remote = {to, offset, window};
    EXPECT_TRUE(channel->Post({&work, 1}).ok());
  }

  std::vector<std::byte> memory = std::vector<std::byte>(8192);
  std::shared_ptr<fabric::Fabric> fabric;
  std::unique_ptr<fabric::CompletionQueue> queue;
  std::unique_ptr<fabric::Region> region;
  std::unique_ptr<fabric::Channel> channel;
  void Ask(const format::Request& request) {
    answered = false;
    std::memcpy(memory.data() + 4096, &request, sizeof(request));
    fabric::WorkRequest work;
    work.kind = OpKind::kWriteImm;
    work.local = std::span(memory).subspan(4096, sizeof(request));
    work.remote = {format::kRequestRegion, 0};
    EXPECT_TRUE(channel->Post({&work, 1}).ok());
  }
  [[nodiscard]] format::Reply reply() const { return LoadAs<format::Reply>(memory); }

  bool closed = false;
  bool answered = false;
  Code code = Code::kOk;
};

class RightsTest : public PortsTest {
 protected:
  explicit RightsTest(bool windows = false, bool nic_writes = false) : PortsTest(windows, nic_writes) {}

  bool RawUntil(Raw& raw, const std::function<bool()>& done) {
    return RunUntil({}, [&] {
      raw.Poll();
      return done();
    });
  }
  // Returns the offset of these bytes in the pool.
  [[nodiscard]] std::optional<uint64_t> OffsetOfIfThere(std::string_view bytes) const {
    const size_t at = AsString(pool_->pool().bytes()).find(bytes);
    return at == std::string_view::npos ? std::nullopt : std::optional<uint64_t>(at);
  }
  [[nodiscard]] uint64_t OffsetOf(std::string_view bytes) const {
    const auto at = OffsetOfIfThere(bytes);
    EXPECT_TRUE(at.has_value());
    return at.value_or(0);
  }
};

TEST_F(RightsTest, OnlyTheServersUserWritesIntoThePool) {
  for (const uint32_t user : {0U, 1U}) {
    Raw raw(network_, user);
    ASSERT_TRUE(RawUntil(raw, [&] { return raw.channel->connected(); }));
    const auto offered = raw.channel->peer_regions();
    ASSERT_EQ(offered.size(), 4U);
    EXPECT_EQ(offered[format::kPoolRegion].access, fabric::Access::kRemoteRead);
    EXPECT_EQ(offered[format::kControlRegion].access, fabric::Access::kRemoteRead);
    EXPECT_EQ(raw.hello().placing, static_cast<uint8_t>(user == 0 ? Placing::kPool : Placing::kStaging));
    EXPECT_EQ(offered[3].size, user == 0 ? pool_->pool().size() : 4 << 20);
  }
}

TEST_F(RightsTest, AnotherUserOverwritesNeitherASettledObjectNorAnothersChunk) {
  const auto steady = MakeClient("steady", 0, PutPath::kReserve);
  const auto delegating = MakeClient("delegating", 1, PutPath::kDelegate);
  const std::string settled(3000, 's');
  const std::string in_chunk(3000, 'c');
  ASSERT_EQ(Put(*steady, "settled", settled), Code::kOk);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Put(*delegating, "chunk", in_chunk), Code::kOk);
  ASSERT_GT(Count(Counter::kPutsDelegated), 0U);
  struct Place {
    uint32_t region;
    uint64_t offset;
  };
  const uint64_t staging = 4 << 20;
  const Place places[] = {{format::kPoolRegion, OffsetOf(settled)},
                          {format::kPoolRegion, OffsetOf(in_chunk)},
                          {format::kPoolRegion, OffsetOf(in_chunk) + 3072},  // the next place in the chunk
                          {format::kPoolRegion, 0},
                          {format::kControlRegion, 0},
                          {format::kStagingRegion, staging - 5},
                          {format::kStagingRegion, staging + OffsetOf(settled)},
                          {format::kStagingRegion, UINT64_MAX - 3},
                          {4, 0}};
  for (const auto& [region, offset] : places) {
    SCOPED_TRACE(std::to_string(region) + " at " + std::to_string(offset));
    Raw raw(network_, 1);
    ASSERT_TRUE(RawUntil(raw, [&] { return raw.channel->connected(); }));
    raw.Write(format::kStagingRegion, 0, "its own");
    raw.Write(region, offset, "overwritten");
    ASSERT_TRUE(RawUntil(raw, [&] { return raw.closed; }));
    EXPECT_EQ(raw.code, Code::kPermissionDenied);
    EXPECT_EQ(Get(*steady, "settled"), settled);
    EXPECT_EQ(Get(*steady, "chunk"), in_chunk);
    ASSERT_EQ(Put(*delegating, "chunk", in_chunk), Code::kOk);
  }
  EXPECT_EQ(Count(Counter::kViolations), 0U) << "none of it reached the server";
}

TEST_F(RightsTest, AnotherUserPutsThroughItsStagingBuffer) {
  const auto stranger = MakeClient("stranger", 0, PutPath::kDelegate, 1);
  const auto reader = MakeClient("reader", 1);
  ASSERT_EQ(Put(*stranger, "key", "connects first"), Code::kOk);
  for (const size_t size : {1, 100, 5000, 14'000}) {
    const std::string value(size, static_cast<char>('a' + size % 26));
    const size_t doorbells = Doorbells();
    ASSERT_EQ(Put(*stranger, "key", value), Code::kOk);
    EXPECT_EQ(Doorbells(), doorbells + 1);
    EXPECT_EQ(Get(*reader, "key"), value);
  }
  EXPECT_EQ(Count(Counter::kPutsStaged), 5U);
  EXPECT_EQ(Count(Counter::kViolations), 0U);
}

// --- Windows

class WindowRightsTest : public RightsTest {
 protected:
  WindowRightsTest() : RightsTest(true) {}

  // A raw client of another user, with a chunk.
  struct Delegated {
    explicit Delegated(fabric::SimNetwork& network) : raw(network, 1) {}
    Raw raw;
    format::Reply chunk{};
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  std::unique_ptr<Delegated> Delegate() {
    auto made = std::make_unique<Delegated>(network_);
    Raw& raw = made->raw;
    EXPECT_TRUE(RawUntil(raw, [&] { return raw.channel->connected(); }));
    EXPECT_EQ(raw.hello().placing, static_cast<uint8_t>(Placing::kWindow));
    format::Request request{};
    request.op = static_cast<uint8_t>(format::RequestOp::kDelegate);
    request.value_size = 8192;
    request.version = 4096;
    raw.Ask(request);
    EXPECT_TRUE(RawUntil(raw, [&] { return raw.answered; }));
    made->chunk = raw.reply();
    EXPECT_EQ(made->chunk.code, static_cast<uint8_t>(Code::kOk));
    made->offset = OffsetOf(AsString(BytesOf(made->chunk.header)));
    made->bytes = SpaceOf(made->chunk.header);
    return made;
  }
  format::Request GiveBack(const Delegated& of) {
    format::Request request{};
    request.op = static_cast<uint8_t>(format::RequestOp::kGiveBack);
    request.address = of.chunk.address;
    request.head = of.chunk.head;
    request.version = of.chunk.header.version;
    return request;
  }
  static uint32_t KeyOf(const Delegated& of) { return static_cast<uint32_t>(of.chunk.number); }
  // The client tries to write, and loses its channel.
  void ExpectDenied(Raw& raw, uint64_t offset, uint32_t key) {
    raw.Write(format::kPoolRegion, offset, "overwritten", key);
    ASSERT_TRUE(RawUntil(raw, [&] { return raw.closed; }));
    EXPECT_EQ(raw.code, Code::kPermissionDenied);
    EXPECT_EQ(AsString(pool_->pool().bytes()).find("overwritten"), std::string_view::npos);
  }
};

TEST_F(WindowRightsTest, ClientWritesOnlyIntoItsChunk) {
  const auto steady = MakeClient("steady", 0);
  const std::string settled(3000, 's');
  ASSERT_EQ(Put(*steady, "settled", settled), Code::kOk);
  const uint64_t settled_at = OffsetOf(settled);
  enum Where { kHeader, kEndOfHeader, kEnd, kSettled, kOthers, kWithoutKey };
  for (const Where where : {kHeader, kEndOfHeader, kEnd, kSettled, kOthers, kWithoutKey}) {
    SCOPED_TRACE(where);
    const auto mine = Delegate();
    const auto others = Delegate();
    const uint64_t first = mine->offset + format::kChunkObjectsAt;
    const std::string own = "its own " + std::to_string(where);
    mine->raw.Write(format::kPoolRegion, first, own, KeyOf(*mine));
    ASSERT_TRUE(RawUntil(mine->raw, [&] { return OffsetOfIfThere(own) == first; }));
    const uint64_t tried = where == kHeader        ? mine->offset
                           : where == kEndOfHeader ? first - 1
                           : where == kEnd         ? mine->offset + mine->bytes - 10
                           : where == kSettled     ? settled_at
                           : where == kOthers      ? others->offset + format::kChunkObjectsAt
                                                   : first;
    ExpectDenied(mine->raw, tried, where == kWithoutKey ? 0 : where == kOthers ? KeyOf(*others) : KeyOf(*mine));
    const std::string goes_on = "goes on " + std::to_string(where);
    others->raw.Write(format::kPoolRegion, others->offset + format::kChunkObjectsAt, goes_on, KeyOf(*others));
    EXPECT_TRUE(RawUntil(others->raw, [&] { return OffsetOfIfThere(goes_on).has_value(); }));
    EXPECT_EQ(Get(*steady, "settled"), settled);
  }
}

// (I8) The shard holds the chunk until the window is closed. The client cannot write into a chunk that is not held.
TEST_F(WindowRightsTest, AChunkIsHeldUntilItsWindowIsClosed) {
  int held = 0;
  for (int i = 0; i < 20; ++i) {
    const auto mine = Delegate();
    const uint64_t first = mine->offset + format::kChunkObjectsAt;
    ASSERT_EQ(Count(Counter::kChunks), 1U);
    mine->raw.Write(format::kPoolRegion, first, "under way", KeyOf(*mine));
    mine->raw.Ask(GiveBack(*mine));
    bool was_held = false;
    ASSERT_TRUE(RawUntil(mine->raw, [&] {
      was_held |= mine->raw.answered && Count(Counter::kChunks) == 1;
      shard_->Tidy(Nanoseconds(0));
      return mine->raw.answered && Count(Counter::kChunks) == 0;
    }));
    ExpectDenied(mine->raw, first, KeyOf(*mine));
    held += was_held ? 1 : 0;
  }
  EXPECT_GT(held, 0) << "it was never waited for";
}

// The shard closes the window even if the client never gives the chunk back.
TEST_F(WindowRightsTest, ChunkThatIsNotGivenBackIsClosedLater) {
  const auto mine = Delegate();
  for (int i = 0; i < 40; ++i) shard_->Tidy(Nanoseconds(0));
  ASSERT_TRUE(RawUntil(mine->raw, [&] {
    shard_->Tidy(Nanoseconds(0));
    return Count(Counter::kChunks) == 0;
  }));
  EXPECT_FALSE(mine->raw.closed);
  EXPECT_FALSE(shard_->unsettled());
  ExpectDenied(mine->raw, mine->offset + format::kChunkObjectsAt, KeyOf(*mine));
}

TEST_F(WindowRightsTest, EndOfASessionEndsItsChunks) {
  auto mine = Delegate();
  mine->raw.Ask(GiveBack(*mine));
  for (int i = 0; i < 3; ++i) network_.Step();
  mine.reset();
  const auto another = MakeClient("another", 0);
  EXPECT_TRUE(RunUntil({another.get()}, [&] {
    shard_->Tidy(Nanoseconds(0));
    return Count(Counter::kChunks) == 0;
  }));
  EXPECT_FALSE(shard_->unsettled());
}

TEST_F(WindowRightsTest, AnotherUserDelegatesThroughWindows) {
  const auto stranger = MakeClient("stranger", 0, PutPath::kDelegate, 1);
  const auto reader = MakeClient("reader", 1);
  ASSERT_EQ(Put(*stranger, "key", "connects first"), Code::kOk);
  for (int i = 0; i < 200; ++i) {
    const std::string value(100 + 37 * (i % 50), static_cast<char>('a' + i % 26));
    ASSERT_EQ(Put(*stranger, "key", value), Code::kOk);
    ASSERT_EQ(Get(*reader, "key"), value);
  }
  EXPECT_GT(Count(Counter::kPutsDelegated), 150U);
  EXPECT_GT(Count(Counter::kPutsStaged), 0U) << "what has no chunk is staged";
  const size_t doorbells = Doorbells();
  ASSERT_EQ(Put(*stranger, "key", "one round trip"), Code::kOk);
  EXPECT_EQ(Doorbells(), doorbells + 1);
  EXPECT_EQ(Put(*MakeClient("reserves", 0, PutPath::kReserve, 1), "key", "value"), Code::kPermissionDenied);
  EXPECT_EQ(Count(Counter::kViolations), 0U);
}

// --- A pool whose pages the kernel writes to a disk, and a NIC

constexpr size_t kNicPoolBytes = 4 << 20;

class NicRightsTest : public RightsTest, public testing::WithParamInterface<PoolWrites> {
 protected:
  NicRightsTest() : RightsTest(true, true) {}
  void SetUp() override {
    shard_options_.pool_writes = GetParam();
    medium_ = std::make_unique<server::PagePool>(server::PagePool::Image(kNicPoolBytes / sizeof(uint64_t)), true,
                                                 server::kBoot);
    Serve({});
  }
};
INSTANTIATE_TEST_SUITE_P(Sim, NicRightsTest,
                         testing::Values(PoolWrites::kNobody, PoolWrites::kSameUser, PoolWrites::kEverybody));

// The kernel does not notice a NIC's stores into such a file, so a sync would miss them.
TEST_P(NicRightsTest, NoNicWritesIntoAFileThatTheKernelWritesBack) {
  for (const uint32_t user : {0U, 1U}) {
    Raw raw(network_, user);
    ASSERT_TRUE(RawUntil(raw, [&] { return raw.channel->connected(); }));
    EXPECT_EQ(raw.hello().placing, static_cast<uint8_t>(Placing::kStaging));
    const auto offered = raw.channel->peer_regions();
    ASSERT_EQ(offered.size(), 4U);
    EXPECT_EQ(offered[format::kPoolRegion].access, fabric::Access::kRemoteRead);
  }
  for (const server::PoolRegions& regions : regions_) {
    EXPECT_EQ(regions.readable->access(), fabric::Access::kRemoteRead);
    EXPECT_EQ(regions.writable, nullptr);
  }
  const auto client = MakeClient("client", 0, PutPath::kDelegate);
  const std::string value(9000, 'v');
  ASSERT_EQ(Put(*client, "key", value), Code::kOk);
  ASSERT_EQ(Put(*client, "key", value), Code::kOk);
  EXPECT_EQ(Get(*client, "key"), value);
  EXPECT_EQ(Count(Counter::kPutsStaged), 2U);
}

}  // namespace
}  // namespace erda::sim
