// Conformance: memory windows, over the fabrics that have them: permitted and forbidden writes of a peer.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

constexpr uint64_t kBegin = 8192;
constexpr uint64_t kSize = 4096;
const std::string kUntouched(3 * kBegin, 'u');

WorkRequest Through(uint32_t window, WorkRequest request) {
  request.remote.window = window;
  return request;
}

class WindowTest : public FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_TRUE(server_.fabric->capabilities().memory_windows);
    windows_ = Register(server_, Access::kRemoteReadWindows);
    ASSERT_NE(windows_, nullptr);
    Put(server_.bytes(0, kUntouched.size()), kUntouched);
    Put(client_.bytes(0, kUntouched.size()), Pattern(kUntouched.size(), 1));
  }
  ~WindowTest() override {  // Channels go before the region that was offered on them.
    client_.channel.reset();
    server_.channel.reset();
  }
  void ConnectToWindows() {
    auto pair = ConnectPair();
    client_.channel = std::move(pair.client);
    server_.channel = std::move(pair.server);
    ASSERT_TRUE(client_.channel && server_.channel);
  }
  ChannelPair ConnectPair() {
    Region* const of_client[] = {client_.region.get()};
    Region* const of_server[] = {windows_.get()};
    return Connect(Offer(client_, of_client), Offer(server_, of_server));
  }
  // Opens a window of the connection. The client hears of it.
  uint32_t Open(uint64_t begin = kBegin, uint64_t size = kSize) {
    const auto key = server_.channel->OpenWindow(*windows_, begin, size);
    EXPECT_TRUE(key.ok()) << key.status().ToString();
    const size_t heard = client_.Count(OpKind::kReceiveImm);
    EXPECT_TRUE(Post(*server_.channel, Unsignaled(WriteImm(server_, 0, 0, 0, 1))).ok());
    EXPECT_TRUE(PumpUntil(client_, OpKind::kReceiveImm, heard + 1));
    return key.ok() ? *key : 0;
  }
  // Requires: the connection is not needed any more.
  void ExpectDenied(const WorkRequest& request) {
    client_.events.clear();
    ASSERT_TRUE(Post(*client_.channel, request).ok());
    ASSERT_TRUE(PumpUntil(client_, OpKind::kClosed));
    EXPECT_EQ(client_.events.front().code, Code::kPermissionDenied);
    client_.channel.reset();
    server_.channel.reset();
    client_.events.clear();
    server_.events.clear();
    EXPECT_TRUE(server_.text(0, kUntouched.size()) == kUntouched);
  }

  std::unique_ptr<Region> windows_;
};

// (A device for the suite is also asked whether it has windows.)
std::vector<WorldKind> WorldsWithWindows() {
  std::vector<WorldKind> worlds = AllWorlds();
  std::erase_if(worlds, [](const WorldKind& kind) { return kind.name == "shm"; });
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Fabrics, WindowTest, testing::ValuesIn(WorldsWithWindows()), KindName);

class NoWindowTest : public FabricTest {};

INSTANTIATE_TEST_SUITE_P(Fabrics, NoWindowTest, testing::ValuesIn(AllWorlds()), KindName);

// The same holds over a fabric without windows.
TEST_P(NoWindowTest, RegionWithoutWindowsRefusesAWindow) {
  Connect();
  EXPECT_EQ(server_.channel->OpenWindow(*server_.region, 0, kSize).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(server_.channel->CloseWindow(1, 1).code(), Code::kInvalidArgument);
  ASSERT_TRUE(Post(*server_.channel, Write(server_, 0, 8, 0)).ok());
  EXPECT_TRUE(PumpUntil(server_, OpKind::kWrite)) << "it goes on";
}

TEST_P(WindowTest, PeerWritesAllOfAWindowAndReadsAllOfTheRegion) {
  ConnectToWindows();
  EXPECT_EQ(client_.channel->peer_regions().front().access, Access::kRemoteRead);
  const uint32_t key = Open();
  ASSERT_TRUE(Post(*client_.channel, Through(key, Write(client_, 0, kSize, kBegin))).ok());
  ASSERT_TRUE(Post(*client_.channel, Read(client_, kSize, kSize, kBegin)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead));
  EXPECT_TRUE(client_.text(kSize, kSize) == client_.text(0, kSize));
  EXPECT_TRUE(server_.text(0, kBegin) == kUntouched.substr(0, kBegin));
  EXPECT_TRUE(server_.text(kBegin + kSize, kBegin) == kUntouched.substr(0, kBegin));
  // The smallest windows, and as many as a client has at once.
  for (uint64_t i = 0; i < 32; ++i) {
    const uint64_t at = 2 * kBegin + i;
    ASSERT_TRUE(Post(*client_.channel, Through(Open(at, 1), Write(client_, i, 1, at, i))).ok());
  }
  ASSERT_TRUE(PumpUntil(client_, OpKind::kWrite, 33));
  ASSERT_TRUE(Post(*client_.channel, Read(client_, kSize, 32, 2 * kBegin)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead, 2));
  EXPECT_EQ(client_.text(kSize, 32), client_.text(0, 32));
}

TEST_P(WindowTest, PeerCannotWriteOutsideOfAWindow) {
  struct Try {
    uint64_t offset;
    size_t size;
    bool through;
  };
  for (const auto& [offset, size, through] : std::vector<Try>{{kBegin, 8, false},
                                                              {kBegin - 1, 8, true},
                                                              {kBegin + kSize - 1, 2, true},
                                                              {kBegin + kSize, 1, true},
                                                              {kBegin, kSize + 1, true},
                                                              {0, 8, true},
                                                              {UINT64_MAX - 3, 8, true}}) {
    SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(offset));
    ConnectToWindows();
    const uint32_t key = Open();
    ExpectDenied(Through(through ? key : 0, Write(client_, 0, size, offset)));
  }
  ConnectToWindows();
  const uint32_t key = Open();
  ExpectDenied(Through(key + 1, Write(client_, 0, 8, kBegin)));
}

TEST_P(WindowTest, KeyOpensNothingOnAnotherChannel) {
  const ChannelPair other = ConnectPair();
  ASSERT_TRUE(other.client && other.server);
  const auto key = other.server->OpenWindow(*windows_, kBegin, kSize);
  ASSERT_TRUE(key.ok()) << key.status().ToString();
  ASSERT_TRUE(Post(*other.server, Unsignaled(WriteImm(server_, 0, 0, 0, 1))).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kReceiveImm));
  ConnectToWindows();
  Open(0, kSize);
  ExpectDenied(Through(*key, Write(client_, 0, 8, kBegin)));
  ASSERT_TRUE(Post(*other.client, Through(*key, Write(client_, 0, kSize, kBegin))).ok());
  ASSERT_TRUE(Post(*other.client, Read(client_, kSize, kSize, kBegin)).ok());
  ASSERT_TRUE(PumpUntil(client_, OpKind::kRead)) << "the other one goes on";
  EXPECT_TRUE(server_.text(kBegin, kSize) == client_.text(0, kSize));
}

TEST_P(WindowTest, ClosedWindowStaysClosed) {
  ConnectToWindows();
  const uint32_t first = Open();
  const uint32_t second = Open(0, kSize);
  EXPECT_NE(first, second);
  ASSERT_TRUE(server_.channel->CloseWindow(first, 77).ok());
  ASSERT_TRUE(PumpUntil(server_, OpKind::kWindowClosed));
  const std::vector<Event> events = server_.Of(server_.channel.get());
  EXPECT_EQ(events.back().code, Code::kOk);
  EXPECT_EQ(events.back().id, 77U);
  EXPECT_EQ(server_.channel->CloseWindow(first, 78).code(), Code::kInvalidArgument);
  const uint32_t third = Open();  // On the same bytes.
  EXPECT_NE(third, first);
  ExpectDenied(Through(first, Write(client_, 0, 8, kBegin)));
}

// Writes under way are placed before the end, or never.
TEST_P(WindowTest, NothingLandsAfterAWindowsEnd) {
  for (size_t wait = 0; wait < 20; ++wait) {
    SCOPED_TRACE(wait);
    ConnectToWindows();
    const uint32_t key = Open();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(Post(*client_.channel, Unsignaled(Through(key, Write(client_, 64 * i, 512, kBegin + 128 * i)))).ok());
    }
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    ASSERT_TRUE(server_.channel->CloseWindow(key, 1).ok());
    ASSERT_TRUE(PumpUntil([&] { return server_.Count(OpKind::kWindowClosed) + server_.Count(OpKind::kClosed) > 0; }));
    // The Write was too late, and has ended the channel.
    if (server_.events.back().kind == OpKind::kClosed) server_.channel.reset();
    Put(server_.bytes(0, kUntouched.size()), kUntouched);
    Settle();
    EXPECT_TRUE(server_.text(0, kUntouched.size()) == kUntouched);
    client_.channel.reset();
    server_.channel.reset();
    client_.events.clear();
    server_.events.clear();
  }
}

TEST_P(WindowTest, WindowEndsWithItsChannel) {
  for (size_t wait = 0; wait < 20; ++wait) {
    SCOPED_TRACE(wait);
    ConnectToWindows();
    const uint32_t key = Open();
    Open(0, kSize);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(Post(*client_.channel, Unsignaled(Through(key, Write(client_, 64 * i, 512, kBegin + 128 * i)))).ok());
    }
    for (size_t step = 0; step < wait; ++step) world_->Advance();
    if (wait % 2 == 1) {
      ASSERT_TRUE(server_.channel->CloseWindow(key, 1).ok());
    }
    ASSERT_TRUE(PumpUntil([&] { return server_.channel->Fence(); }));
    server_.channel.reset();
    Put(server_.bytes(0, kUntouched.size()), kUntouched);
    Settle();
    EXPECT_TRUE(server_.text(0, kUntouched.size()) == kUntouched);
    client_.channel.reset();
    client_.events.clear();
    server_.events.clear();
  }
}

TEST_P(WindowTest, InvalidWindowsAreRefused) {
  ConnectToWindows();
  const auto code = [&](const Region& region, uint64_t offset, uint64_t bytes) {
    return server_.channel->OpenWindow(region, offset, bytes).status().code();
  };
  EXPECT_EQ(code(*server_.region, 0, 8), Code::kInvalidArgument);
  EXPECT_EQ(code(*windows_, 0, 0), Code::kInvalidArgument);
  EXPECT_EQ(code(*windows_, kMemoryBytes - 7, 8), Code::kInvalidArgument);
  EXPECT_EQ(code(*windows_, UINT64_MAX - 3, 8), Code::kInvalidArgument);
  EXPECT_EQ(code(*windows_, kMemoryBytes - 8, 8), Code::kOk);
  EXPECT_EQ(server_.channel->CloseWindow(0, 1).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace erda::fabric
