// A shard of a mirrored pool, its clients, and its mirror, on the simulated fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "client/engine.h"
#include "fabric/sim/network.h"
#include "format/mirror_link.h"
#include "inspect/inspection.h"
#include "mirror/follower.h"
#include "mirror/primary_pool.h"
#include "nvm/writer.h"
#include "server/crash_pool.h"
#include "server/pool/formatted_pool.h"
#include "server/sessions/gate.h"
#include "server/shard.h"

namespace erda::sim {
namespace {

constexpr uint64_t kMirroredBytes = 8 << 20;
constexpr Nanoseconds kMirrorTimeout = std::chrono::milliseconds(50);
const std::string kPrimaryAddress = "sim:primary";

// The mirror's process: it takes over the bytes of a pool, and follows from there.
class MirrorProcess {
 public:
  MirrorProcess(fabric::SimNetwork& network, uint64_t id, server::CrashPool::Image image)
      : fabric_(network.CreateFabric("mirror" + std::to_string(id))), id_(id), pool_(std::move(image)) {
    ring_ = *SharedMemory::Create("erda-ring", format::kMirrorRingBytesMin);
    region_ = *fabric_->Register(ring_.view(), fabric::Access::kRemoteReadWrite);
    queue_ = *fabric_->CreateQueue();
  }
  void Connect() {
    format::HelloRequest hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.role = format::Role::kMirror;
    hello.client_id = id_;
    fabric::Region* const offer[] = {region_.get()};
    channel_ = *fabric_->Connect(kPrimaryAddress, {queue_.get(), offer, BytesOf(hello), format::kMirrorMessageDepth});
  }
  void Step() {
    std::array<fabric::Completion, 16> completions;
    for (const auto& completion : std::span(completions).first(queue_->Poll(completions))) Take(completion);
    if (!follower_ || stuck) return;
    while (follower_->has_piece()) EXPECT_TRUE(follower_->Store().ok());
    EXPECT_TRUE(follower_->Answer(*channel_).ok());
    if (!follower_->has_joined() || std::exchange(in_sync_, true)) return;
    EXPECT_TRUE(follower_->SayInSync(*channel_).ok());
  }
  [[nodiscard]] bool in_sync() const { return in_sync_; }
  [[nodiscard]] const mirror::Follower& follower() const { return *follower_; }
  [[nodiscard]] server::CrashPool& pool() { return pool_; }
  bool stuck = false;  // It stores nothing.
  bool closed = false;

 private:
  void Take(const fabric::Completion& completion) {
    if (completion.kind == fabric::OpKind::kConnected) {
      const auto hello = LoadAs<format::MirrorHello>(channel_->peer_data().subspan(sizeof(format::HelloReply)));
      // Its pool is the primary's, as the test has copied it when the stream was here.
      follower_.emplace(ring_.bytes(), writer_);
      in_sync_ = false;
      EXPECT_TRUE(follower_->Start(*channel_, hello, hello.end).ok());
      EXPECT_TRUE(follower_->Join(*channel_).ok());
    } else if (completion.kind == fabric::OpKind::kReceiveImm) {
      EXPECT_TRUE(follower_->Take(completion.imm).ok());
    } else if (completion.kind == fabric::OpKind::kClosed) {
      closed = true;
      follower_.reset();
      in_sync_ = false;
    }
  }

  std::shared_ptr<fabric::Fabric> fabric_;
  const uint64_t id_;
  server::CrashPool pool_;
  nvm::Writer writer_{pool_};
  SharedMemory ring_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Channel> channel_;
  std::optional<mirror::Follower> follower_;
  bool in_sync_ = false;
};

class MirroredShardTest : public testing::Test {
 protected:
  void Serve(mirror::LinksOptions links = {}, uint64_t stream_bytes = journal::Stream::kCapacityMin) {
    links.timeout = kMirrorTimeout;
    links.clock = &network_;
    links.wait = [this](std::span<fabric::CompletionQueue* const> /*queues*/) {
      EXPECT_TRUE(nvm_->is_fenced()) << "the shard has sent pieces, and waits in the middle of a step";
      if (!network_.Step()) network_.RunUntil(network_.Now() + std::chrono::milliseconds(1));
      if (!mirror_) return;
      if (++waits_ % 100 == 0) mirror_->stuck = false;
      mirror_->Step();
    };
    auto nvm = std::make_unique<server::CrashPool>(kMirroredBytes);
    nvm_ = nvm.get();
    auto primary = *mirror::PrimaryPool::Make(std::move(nvm), {}, 1, {stream_bytes, std::move(links)});
    mirror::PrimaryPool* const mirrored = primary.get();
    pool_ =
        *server::FormattedPool::Take(std::move(primary), {"a pool", kMirroredBytes}, {kMirroredBytes, 1, 0, 0, 0, 0});
    ASSERT_TRUE(pool_->MarkOpen().ok());
    fabric_ = network_.CreateFabric("primary");
    regions_ = *server::PoolRegions::Register(*fabric_, pool_->pool());
    queue_ = *fabric_->CreateQueue();
    const server::Port port{*fabric_, regions_, *queue_, format::FlushMethod::kServerFlush};
    server::ShardOptions options;
    options.clock = &network_;
    options.mirrored = mirrored;
    shard_ = *server::Shard::Create(*pool_, 0, std::span(&port, 1), options);
    ASSERT_TRUE(shard_->data().TakeUp().ok());
    shard_->data().BeginCleaning();
    listener_ = *fabric_->Listen(kPrimaryAddress);
  }
  void TearDown() override {
    engine_.reset();
    reader_.reset();
    mirror_.reset();
    listener_.reset();
    shard_.reset();
    regions_ = {};
    queue_.reset();
    pool_.reset();
  }
  // A mirror with the primary's present bytes. The shard has nothing to do meanwhile.
  void Mirror(uint64_t id) {
    server::CrashPool::Image image(kMirroredBytes / sizeof(uint64_t));
    std::memcpy(image.data(), nvm_->bytes().data(), kMirroredBytes);
    mirror_ = std::make_unique<MirrorProcess>(network_, id, std::move(image));
    mirror_->Connect();
  }
  void MirrorDies() {
    network_.KillNode("mirror1");
    mirror_.reset();
  }

  void Step() {
    network_.Step();
    if (auto incoming = listener_->Poll()) {
      const auto guest = server::Greet(*incoming, nullptr, 1, {}, true);
      const bool is_mirror = guest && guest->hello.role == format::Role::kMirror;
      if (guest) shard_->Admit(std::move(incoming), guest->hello, 0, is_mirror ? of_mirrors_ : guest->admission);
    }
    if (shard_->Poll() == 0) (void)shard_->Tidy(std::chrono::milliseconds(1));
    EXPECT_TRUE(nvm_->is_fenced()) << "the mirror gets nothing that a power cut of the primary could take";
    if (mirror_) mirror_->Step();
    if (engine_) engine_->Poll();
    if (reader_) reader_->Poll();
  }
  testing::AssertionResult Until(const std::function<bool()>& done) {
    for (int step = 0; step < 200'000; ++step) {
      if (done()) return testing::AssertionSuccess();
      Step();
    }
    return testing::AssertionFailure() << "it never happened";
  }
  void Rest(int steps = 2000) {
    while (steps-- > 0) Step();
  }
  void Pass(Nanoseconds time) {
    network_.RunUntil(network_.Now() + time);
    Rest(20);
  }

  // --- A client

  void MakeClient() {
    client::EngineOptions options;
    options.client_id = 1000;
    options.timeout = std::chrono::hours(1);
    engine_ = *client::Engine::Create(network_.CreateFabric("client"), kPrimaryAddress, options, network_);
    // A client's get of a key waits for its own puts of it.
    options.client_id = 1001;
    reader_ = *client::Engine::Create(network_.CreateFabric("reader"), kPrimaryAddress, options, network_);
  }
  testing::AssertionResult ConnectClient() {
    MakeClient();
    return Until([this] {
      const auto up = engine_->connections().Connect();
      return up.ok() && *up;
    });
  }
  std::shared_ptr<std::optional<Status>> Put(const std::string& key, const std::string& value) {
    auto came = std::make_shared<std::optional<Status>>();
    EXPECT_TRUE(engine_->Put(key, value, [came](const Status& status) { *came = status; }).ok());
    return came;
  }
  Status PutAndWait(const std::string& key, const std::string& value) {
    const auto came = Put(key, value);
    EXPECT_TRUE(Until([&] { return came->has_value(); })) << "a put of " << key;
    return came->value_or(Status(Code::kInternal, "it never ended"));
  }
  // Returns the value, or the code of the error. `step` goes on until the get has ended.
  static std::string GetBy(client::Engine& engine, const std::string& key, const std::function<void()>& step) {
    std::optional<std::string> came;
    const Status began = engine.Get(key, [&](const Result<std::string_view>& value) {
      came = value.ok() ? std::string(*value) : CodeName(value.status().code());
    });
    EXPECT_TRUE(began.ok());
    for (int i = 0; i < 200'000 && !came; ++i) step();
    return came.value_or("never");
  }
  std::string Get(const std::string& key) {
    return GetBy(*reader_, key, [this] { Step(); });
  }

  // --- The mirror's pool

  // Recovers the mirror's pool, as a promotion does, and returns the values of the keys.
  std::vector<std::string> Promoted(const std::vector<std::string>& keys) {
    server::CrashPool::Image image(kMirroredBytes / sizeof(uint64_t));
    std::memcpy(image.data(), mirror_->pool().bytes().data(), kMirroredBytes);
    TearDown();
    fabric::SimNetwork network(2);
    auto fabric = network.CreateFabric("promoted");
    auto pool =
        *server::FormattedPool::Take(std::make_unique<server::CrashPool>(std::move(image)), {"a mirror", 0}, {});
    EXPECT_TRUE(pool->needs_recovery());
    auto regions = *server::PoolRegions::Register(*fabric, pool->pool());
    auto queue = *fabric->CreateQueue();
    const server::Port port{*fabric, regions, *queue, format::FlushMethod::kServerFlush};
    server::ShardOptions options;
    options.clock = &network;
    auto shard = *server::Shard::Create(*pool, 0, std::span(&port, 1), options);
    EXPECT_TRUE(shard->data().TakeUp().ok());
    (void)shard->data().Repair();
    shard->data().BeginCleaning();
    const auto report = inspect::InspectPool(pool->pool().bytes(), {});
    EXPECT_TRUE(report.ok() && report->damage_count == 0);
    auto listener = *fabric->Listen(kPrimaryAddress);
    client::EngineOptions of_client;
    of_client.timeout = std::chrono::hours(1);
    auto engine = *client::Engine::Create(network.CreateFabric("client"), kPrimaryAddress, of_client, network);
    const auto step = [&] {
      network.Step();
      if (auto incoming = listener->Poll()) {
        const auto guest = server::Greet(*incoming, nullptr, 1);
        if (guest) shard->Admit(std::move(incoming), guest->hello, 0, guest->admission);
      }
      (void)shard->Poll();
      engine->Poll();
    };
    std::vector<std::string> values;
    for (const std::string& key : keys) values.push_back(GetBy(*engine, key, step));
    engine.reset();
    listener.reset();
    return values;
  }

  fabric::SimNetwork network_{1};
  server::Admission of_mirrors_;
  uint64_t waits_ = 0;  // Of the shard, for the mirror.
  server::CrashPool* nvm_ = nullptr;
  std::unique_ptr<server::FormattedPool> pool_;
  std::shared_ptr<fabric::Fabric> fabric_;
  server::PoolRegions regions_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<server::Shard> shard_;
  std::unique_ptr<fabric::Listener> listener_;
  std::unique_ptr<MirrorProcess> mirror_;
  std::unique_ptr<client::Engine> engine_;
  std::unique_ptr<client::Engine> reader_;
};

TEST_F(MirroredShardTest, NoClientIsServedBeforeAMirrorIsInSync) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  MakeClient();
  bool up = false;
  for (int i = 0; i < 3000; ++i) {
    const auto connected = engine_->connections().Connect();
    up |= connected.ok() && *connected;
    Step();
  }
  EXPECT_FALSE(up);
  Mirror(1);
  ASSERT_TRUE(Until([&] { return mirror_->in_sync(); }));
  ASSERT_TRUE(ConnectClient());
  EXPECT_TRUE(PutAndWait("key", "value").ok());
  EXPECT_EQ(Get("key"), "value");
}

TEST_F(MirroredShardTest, APutIsAnsweredAndReadOnceTheMirrorHasStoredIt) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Mirror(1);
  ASSERT_TRUE(ConnectClient());
  ASSERT_TRUE(PutAndWait("key", "first").ok());
  mirror_->stuck = true;
  const auto came = Put("key", "second");
  Rest(500);
  EXPECT_FALSE(came->has_value());
  EXPECT_EQ(Get("key"), "first");
  mirror_->stuck = false;
  ASSERT_TRUE(Until([&] { return came->has_value(); }));
  EXPECT_TRUE((*came)->ok()) << (*came)->ToString();
  EXPECT_EQ(Get("key"), "second");
}

TEST_F(MirroredShardTest, APromotedMirrorHasEachPutThatWasAnswered) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Mirror(1);
  ASSERT_TRUE(ConnectClient());
  std::vector<std::string> keys;
  std::vector<std::string> values;
  for (int i = 0; i < 60; ++i) {
    keys.push_back("key" + std::to_string(i));
    values.push_back("value" + std::to_string(i) + std::string(static_cast<size_t>(i * 37 % 600), 'v'));
    ASSERT_TRUE(PutAndWait(keys.back(), values.back()).ok());
  }
  for (size_t i = 0; i < keys.size(); i += 3) {
    values[i] = "again" + std::to_string(i);
    ASSERT_TRUE(PutAndWait(keys[i], values[i]).ok());
  }
  EXPECT_EQ(Promoted(keys), values);
}

TEST_F(MirroredShardTest, WithoutItsMirrorTheShardStopsAndGetsGoOn) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Mirror(1);
  ASSERT_TRUE(ConnectClient());
  ASSERT_TRUE(PutAndWait("key", "first").ok());
  MirrorDies();
  const auto came = Put("key", "second");
  ASSERT_TRUE(Until([&] { return shard_->links()->size() == 0; }));
  Rest(100);
  EXPECT_FALSE(came->has_value()) << "it waits for a while";
  Pass(2 * kMirrorTimeout);
  ASSERT_TRUE(Until([&] { return came->has_value(); }));
  EXPECT_EQ((*came)->code(), Code::kUnavailable);
  EXPECT_NE((*came)->message().find("no mirror in sync"), std::string_view::npos) << (*came)->ToString();
  EXPECT_EQ(PutAndWait("other", "value").code(), Code::kUnavailable);
  EXPECT_EQ(Get("key"), "first");
  EXPECT_EQ(Get("other"), "not found");

  // A copy of the pool joins. The put that was not answered takes effect. The one that was refused does not.
  Mirror(2);
  ASSERT_TRUE(Until([&] { return mirror_->in_sync() && !shard_->links()->stopped(); }));
  EXPECT_TRUE(Until([&] { return Get("key") == "second"; }));
  EXPECT_EQ(Get("other"), "not found");
  EXPECT_TRUE(PutAndWait("other", "value").ok());
  EXPECT_EQ(Promoted({"key", "other"}), (std::vector<std::string>{"second", "value"}));
}

TEST_F(MirroredShardTest, WithoutItsMirrorTheShardGoesOnAloneIfItMay) {
  ASSERT_NO_FATAL_FAILURE(Serve({.goes_alone = true}));
  Mirror(1);
  ASSERT_TRUE(ConnectClient());
  ASSERT_TRUE(PutAndWait("key", "first").ok());
  MirrorDies();
  const auto came = Put("key", "second");
  ASSERT_TRUE(Until([&] { return shard_->links()->size() == 0; }));
  Rest(100);
  EXPECT_FALSE(came->has_value());
  Pass(2 * kMirrorTimeout);
  ASSERT_TRUE(Until([&] { return came->has_value(); }));
  EXPECT_TRUE((*came)->ok());
  EXPECT_EQ(Get("key"), "second");
}

TEST_F(MirroredShardTest, AMirrorWhoseTokenIsRemovedIsLost) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  of_mirrors_.token = 5;
  Mirror(1);
  ASSERT_TRUE(ConnectClient());
  ASSERT_TRUE(PutAndWait("key", "first").ok());
  shard_->EndOthers({5, 6});
  EXPECT_TRUE(PutAndWait("other", "value").ok());
  mirror_->stuck = true;
  const auto came = Put("key", "second");
  Rest(100);
  shard_->EndOthers({6});
  EXPECT_EQ(shard_->links()->size(), 0U);
  ASSERT_TRUE(Until([&] { return mirror_->closed; }));
  Rest(100);
  EXPECT_FALSE(came->has_value()) << "it waits for a while";
  Pass(2 * kMirrorTimeout);
  ASSERT_TRUE(Until([&] { return came->has_value(); }));
  EXPECT_EQ((*came)->code(), Code::kUnavailable);
  EXPECT_EQ(Get("key"), "first");

  of_mirrors_.token = 6;
  Mirror(2);
  ASSERT_TRUE(Until([&] { return mirror_->in_sync() && !shard_->links()->stopped(); }));
  EXPECT_TRUE(PutAndWait("key", "third").ok());
}

// One mirror is in sync, and the next one makes its copy.
TEST_F(MirroredShardTest, TheLimitOfATokensClientsCountsNoMirrors) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  shard_->SetLimits(1, 0);
  of_mirrors_.token = 5;
  Mirror(1);
  ASSERT_TRUE(Until([&] { return mirror_->in_sync(); }));
  const auto first = std::move(mirror_);
  Mirror(2);
  EXPECT_TRUE(Until([&] {
    first->Step();
    return shard_->links()->size() == 2;
  }));
}

// The stream has room for some of them only.
TEST_F(MirroredShardTest, PutsOfMoreThanTheStreamGoToASlowMirror) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Mirror(1);
  ASSERT_TRUE(ConnectClient());
  std::vector<std::shared_ptr<std::optional<Status>>> all;
  for (int i = 0; i < 60; ++i) {
    all.push_back(Put("key" + std::to_string(i), std::string(12'000, static_cast<char>('a' + i % 26))));
    mirror_->stuck = i % 2 == 0;
    Rest(20);
  }
  mirror_->stuck = false;
  for (const auto& came : all) {
    ASSERT_TRUE(Until([&] { return came->has_value(); }));
    EXPECT_TRUE((*came)->ok()) << (*came)->ToString();
  }
  EXPECT_EQ(shard_->links()->size(), 1U);
  EXPECT_EQ(Promoted({"key0", "key59"}),
            (std::vector<std::string>{std::string(12'000, 'a'), std::string(12'000, 'h')}));
}

}  // namespace
}  // namespace erda::sim
