// What a client of another user reaches over the simulated fabric: its staging buffer, and what it may read.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/messages.h"
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
      if (completion.kind == OpKind::kWrite) code = completion.code;
    }
  }
  void Write(uint32_t to, uint64_t offset, std::string_view bytes) {
    std::memcpy(memory.data() + 4096, bytes.data(), bytes.size());
    fabric::WorkRequest work;
    work.kind = OpKind::kWrite;
    work.local = std::span(memory).subspan(4096, bytes.size());
    work.remote = {to, offset};
    EXPECT_TRUE(channel->Post({&work, 1}).ok());
  }

  std::vector<std::byte> memory = std::vector<std::byte>(8192);
  std::shared_ptr<fabric::Fabric> fabric;
  std::unique_ptr<fabric::CompletionQueue> queue;
  std::unique_ptr<fabric::Region> region;
  std::unique_ptr<fabric::Channel> channel;
  bool closed = false;
  Code code = Code::kOk;
};

class RightsTest : public PortsTest {
 protected:
  bool RawUntil(Raw& raw, const std::function<bool()>& done) {
    return RunUntil({}, [&] {
      raw.Poll();
      return done();
    });
  }
  // Where these bytes are in the pool.
  [[nodiscard]] uint64_t OffsetOf(std::string_view bytes) const {
    const std::string_view pool = AsString(pool_->pool().bytes());
    const size_t at = pool.find(bytes);
    EXPECT_NE(at, std::string_view::npos);
    return at;
  }
};

TEST_F(RightsTest, ThePoolIsWrittenByTheServersUserAlone) {
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
                          {format::kPoolRegion, OffsetOf(in_chunk) + 3072},  // what comes next there
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

TEST_F(RightsTest, AnotherUserPutsThroughItsBuffer) {
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

}  // namespace
}  // namespace erda::sim
