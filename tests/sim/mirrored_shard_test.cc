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
#include "base/hash.h"
#include "client/engine.h"
#include "fabric/sim/network.h"
#include "mirror/primary_pool.h"
#include "server/crash_pool.h"
#include "server/pool/formatted_pool.h"
#include "server/requests/reply_batch.h"
#include "server/sessions/gate.h"
#include "server/shard.h"
#include "sim/mirror_machine.h"

namespace erda::sim {
namespace {

constexpr uint64_t kMirroredBytes = 8 << 20;
constexpr Nanoseconds kMirrorTimeout = std::chrono::milliseconds(50);
const std::string kPrimaryAddress = "sim:primary";

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
    const mirror::Membership::Keep keep = [](uint64_t /*id*/) { return Status(); };
    const bool names = links.sync && !links.goes_alone;
    auto primary = *mirror::PrimaryPool::Make(
        std::move(nvm), {}, 1, {stream_bytes, std::move(links), 0, names ? keep : mirror::Membership::Keep()});
    mirror::PrimaryPool* const mirrored = primary.get();
    pool_ =
        *server::FormattedPool::Take(std::move(primary), {"a pool", kMirroredBytes}, {kMirroredBytes, 1, 0, 0, 0, 0});
    ASSERT_TRUE(pool_->MarkOpen().ok());
    fabric_ = network_.CreateFabric("primary");
    regions_ = *server::PoolRegions::Register(*fabric_, pool_->pool());
    queue_ = *fabric_->CreateQueue();
    const server::Port port{*fabric_, regions_, *queue_, format::FlushMethod::kServerFlush};
    options_.clock = &network_;
    options_.mirrored = mirrored;
    shard_ = *server::Shard::Create(*pool_, 0, std::span(&port, 1), options_);
    shard_->OnEvent([](std::string_view line) { ADD_FAILURE() << line; });
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
  // A mirror begins its copy. If it loses its links, it does not come again.
  void Mirror(uint64_t id) {
    mirror::MirrorOptions options;
    options.address = kPrimaryAddress;
    options.id = id;
    options.retry = std::chrono::hours(24);
    mirror_ = std::make_unique<MirrorMachine>(network_, pool_->superblock(), std::move(options));
    mirror_->Start();
  }
  void ServeMirrorAndClient() {
    ASSERT_NO_FATAL_FAILURE(Serve());
    Mirror(1);
    ASSERT_TRUE(ConnectClient());
  }
  void MirrorDies() {
    mirror_->Kill();
    mirror_.reset();
  }
  // The mirror dies, and the shard stops at its next Poll.
  void StopBeforePoll() {
    MirrorDies();
    for (int step = 0; step < 1000 && shard_->links()->size() > 0; ++step) {
      network_.Step();
      (void)shard_->links()->Poll();
    }
    shard_->links()->Look();  // The time without a mirror begins.
    network_.RunUntil(network_.Now() + 2 * kMirrorTimeout);
    shard_->links()->Look();
    ASSERT_TRUE(shard_->links()->stopped());
  }
  void Stop() {
    ASSERT_NO_FATAL_FAILURE(StopBeforePoll());
    (void)shard_->Poll();
  }
  // Another mirror joins, with a copy of the pool.
  void Resume() {
    Rest();
    Mirror(1);
    ASSERT_TRUE(Until([&] { return mirror_->in_sync() && !shard_->links()->stopped(); }));
  }

  void Step() {
    network_.Step();
    if (auto incoming = listener_->Poll()) {
      const auto guest = server::Greet(*incoming, nullptr, 1, {}, true);
      const bool is_mirror = guest && guest->hello.role == format::Role::kMirror;
      if (guest) shard_->Admit(std::move(incoming), guest->hello, 0, is_mirror ? of_mirrors_ : guest->admission);
    }
    if (shard_->Poll() == 0 && ++idle_steps_ % steps_per_tidy_ == 0) (void)shard_->Tidy(std::chrono::milliseconds(1));
    EXPECT_TRUE(nvm_->is_fenced()) << "the mirror gets nothing that a power cut of the primary could take";
    if (mirror_) mirror_->Step();
    if (engine_ && !client_rests_) engine_->Poll();
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
    client::EngineOptions options = of_client_;
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
  using Came = std::shared_ptr<std::optional<Status>>;
  Came Put(const std::string& key, const std::string& value) {
    auto came = std::make_shared<std::optional<Status>>();
    EXPECT_TRUE(engine_->Put(key, value, [came](const Status& status) { *came = status; }).ok());
    return came;
  }
  // The reader puts a value, if the key is absent.
  Came PutIfAbsent(const std::string& key) {
    auto came = std::make_shared<std::optional<Status>>();
    const Status began = reader_->Put(key, "of the reader", PutOptions{.if_version = kAbsent},
                                      [came](const Result<uint64_t>& version) { *came = version.status(); });
    EXPECT_TRUE(began.ok());
    return came;
  }
  Code CodeOf(const Came& came) {
    EXPECT_TRUE(Until([&] { return came->has_value(); }));
    return came->value_or(Status(Code::kInternal)).code();
  }
  Status PutAndWait(const std::string& key, const std::string& value) {
    const Came came = Put(key, value);
    EXPECT_TRUE(Until([&] { return came->has_value(); })) << "a put of " << key;
    return came->value_or(Status(Code::kInternal, "it never ended"));
  }
  // Returns the value, or the code of the error.
  std::string Get(const std::string& key) {
    return GetBy(*reader_, key, [this] { Step(); });
  }

  // Returns keys of one head.
  std::vector<std::string> KeysOfOneHead(size_t count) {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      const std::string key = "key" + std::to_string(i);
      if (pool_->geometry().HeadOf(HashOf(key)) == pool_->geometry().HeadOf(HashOf("key0"))) keys.push_back(key);
    }
    return keys;
  }
  [[nodiscard]] uint64_t HashOf(const std::string& key) const { return HashKey(key, pool_->superblock().hash_seed); }
  [[nodiscard]] server::Versions& versions() { return shard_->data().versions(); }
  [[nodiscard]] uint64_t delegated() const { return shard_->counters().Get(format::Counter::kPutsDelegated); }

  // --- The mirror's pool

  // Recovers the mirror's pool, as a promotion does, and returns the values of the keys.
  std::vector<std::string> Promoted(const std::vector<std::string>& keys) {
    EXPECT_TRUE(mirror_->mark().in_sync);
    EXPECT_TRUE(mirror_->process()->Leave().ok());
    server::CrashPool::Image image(kMirroredBytes / sizeof(uint64_t));
    std::memcpy(image.data(), mirror_->pool().bytes().data(), kMirroredBytes);
    TearDown();
    sim::Promoted promoted(std::move(image));
    EXPECT_EQ(promoted.damage(), "");
    std::vector<std::string> values;
    values.reserve(keys.size());
    for (const std::string& key : keys) values.push_back(promoted.Get(key));
    return values;
  }

  fabric::SimNetwork network_{1};
  server::ShardOptions options_;
  client::EngineOptions of_client_;
  uint64_t idle_steps_ = 0;
  uint64_t steps_per_tidy_ = 1;
  bool client_rests_ = false;  // It takes no messages. The reader does.
  server::Admission of_mirrors_;
  uint64_t waits_ = 0;  // Of the shard, for the mirror.
  server::CrashPool* nvm_ = nullptr;
  std::unique_ptr<server::FormattedPool> pool_;
  std::shared_ptr<fabric::Fabric> fabric_;
  server::PoolRegions regions_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<server::Shard> shard_;
  std::unique_ptr<fabric::Listener> listener_;
  std::unique_ptr<MirrorMachine> mirror_;
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
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
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
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
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
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
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
  Mirror(1);
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

TEST_F(MirroredShardTest, AShardThatIsNeverIdleStopsToo) {
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  ASSERT_TRUE(PutAndWait("key", "first").ok());
  steps_per_tidy_ = UINT64_MAX;
  MirrorDies();
  ASSERT_TRUE(Until([&] { return shard_->links()->size() == 0; }));
  const auto came = Put("key", "second");
  for (int i = 0; i < 50 && !came->has_value(); ++i) {
    (void)Put("other" + std::to_string(i), "value");
    network_.RunUntil(network_.Now() + kMirrorTimeout / 10);
    Rest(20);
  }
  ASSERT_TRUE(came->has_value());
  EXPECT_EQ((*came)->code(), Code::kUnavailable);
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
  mirror_->stuck = false;
  ASSERT_TRUE(Until([&] { return mirror_->state() == mirror::Mirror::State::kApart; }));
  Rest(100);
  EXPECT_FALSE(came->has_value()) << "it waits for a while";
  Pass(2 * kMirrorTimeout);
  ASSERT_TRUE(Until([&] { return came->has_value(); }));
  EXPECT_EQ((*came)->code(), Code::kUnavailable);
  EXPECT_EQ(Get("key"), "first");

  of_mirrors_.token = 6;
  MirrorDies();
  Mirror(1);
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
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
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

// --- What comes while the shard is stopped, or waits when it stops

TEST_F(MirroredShardTest, ARefusedCommitEndsItsReservation) {
  options_.reservations_per_client = 2;
  of_client_.put_path = PutPath::kReserve;
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  client_rests_ = true;
  const Came a = Put("a", "1");
  const Came b = Put("b", "2");
  engine_->Poll();  // Sends both.
  ASSERT_TRUE(Until([&] { return versions().in_flight() == 2; }));
  ASSERT_NO_FATAL_FAILURE(Stop());
  client_rests_ = false;  // Now it writes the values, and commits.
  EXPECT_EQ(CodeOf(a), Code::kUnavailable);
  EXPECT_EQ(CodeOf(b), Code::kUnavailable);
  EXPECT_EQ(Get("a"), "not found");

  ASSERT_NO_FATAL_FAILURE(Resume());
  const Came c = Put("c", "3");
  const Came d = Put("d", "4");
  EXPECT_EQ(CodeOf(c), Code::kOk);
  EXPECT_EQ(CodeOf(d), Code::kOk);
  EXPECT_TRUE(Until([&] { return versions().in_flight() == 0; }));
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Promoted({"a", "b", "c", "d"}), (std::vector<std::string>{"1", "2", "3", "4"}));
}

TEST_F(MirroredShardTest, ACommitThatWaitsWhenTheShardStopsEndsItsReservation) {
  options_.reservations_per_client = 1;
  of_client_.put_path = PutPath::kReserve;
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  mirror_->stuck = true;
  const Came a = Put("a", "1");
  Rest(500);
  EXPECT_FALSE(a->has_value());
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_EQ(CodeOf(a), Code::kUnavailable);
  ASSERT_NO_FATAL_FAILURE(Resume());
  EXPECT_TRUE(PutAndWait("b", "2").ok());
  EXPECT_EQ(Promoted({"a", "b"}), (std::vector<std::string>{"1", "2"}));
}

// The answer with the space waits, since the client has as many puts with kPlaced as it may have.
TEST_F(MirroredShardTest, AClientGetsTheSpaceThatItWaitsForWhenTheShardStops) {
  constexpr uint32_t kSlots = 4;
  options_.slots_per_client = kSlots;
  of_client_.put_path = PutPath::kReserve;
  of_client_.ack = Ack::kPlaced;
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  mirror_->stuck = true;
  std::vector<Came> all;
  for (uint32_t i = 0; i < kSlots + 2; ++i) all.push_back(Put("key" + std::to_string(i), "value"));
  Rest();
  for (uint32_t i = 0; i < kSlots + 2; ++i) EXPECT_EQ(all[i]->has_value(), i < kSlots) << i;
  ASSERT_NO_FATAL_FAILURE(Stop());
  for (const Came& came : all) EXPECT_EQ(CodeOf(came), Code::kOk);
  EXPECT_EQ(PutAndWait("other", "value").code(), Code::kUnavailable);
  ASSERT_NO_FATAL_FAILURE(Resume());
  EXPECT_TRUE(Until([&] { return versions().in_flight() == 0; }));
  for (uint32_t i = 0; i < kSlots + 2; ++i) EXPECT_EQ(Get("key" + std::to_string(i)), "value") << i;
}

TEST_F(MirroredShardTest, AClientGetsSpaceIfTheShardStopsInTheMiddleOfTheRequest) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Mirror(1);
  ASSERT_TRUE(Until([&] { return mirror_->in_sync(); }));
  ASSERT_NO_FATAL_FAILURE(Stop());
  server::ReplyBatch replies(shard_->data().nvm(), shard_->control().activity(), network_);
  server::Session session;
  session.slots = 2;
  session.reply_memory.resize(2 * sizeof(format::Reply));
  const auto reserve = static_cast<uint8_t>(format::RequestOp::kReserve);
  const auto put = static_cast<uint8_t>(format::RequestOp::kPutInline);
  replies.AddReply({session, 0}, reserve, 1, {}, server::Undone::kPlaced);
  replies.AddReply({session, 1}, put, 2, {}, server::Undone::kPlaced);
  EXPECT_EQ(session.replies.size(), 2U);
  const auto code = [&](size_t slot) {
    return LoadAs<format::Reply>(std::span(session.reply_memory).subspan(slot * sizeof(format::Reply))).code;
  };
  EXPECT_EQ(Code{code(0)}, Code::kOk);
  EXPECT_EQ(Code{code(1)}, Code::kUnavailable);
}

TEST_F(MirroredShardTest, ARefusedDelegatedPutEndsItsChunk) {
  of_client_.put_path = PutPath::kDelegate;
  steps_per_tidy_ = 500;  // No chunk gets too old.
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  const std::vector<std::string> keys = KeysOfOneHead(5);
  for (int i = 0; i < 3; ++i) {  // The first ones ask for a chunk, and learn of its region.
    ASSERT_TRUE(PutAndWait(keys[0], "v0").ok());
    Rest(100);
  }
  ASSERT_EQ(delegated(), 1U);
  mirror_->stuck = true;
  const Came waits = Put(keys[1], "v1");
  ASSERT_TRUE(Until([&] { return delegated() == 2; }));
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_EQ(CodeOf(waits), Code::kUnavailable);

  // The client does not know yet that a put is refused, and places the next one in the chunk.
  client_rests_ = true;
  const Came refused = Put(keys[2], "v2");
  const Came also_refused = Put(keys[3], "v3");
  engine_->Poll();  // Sends both.
  ASSERT_NO_FATAL_FAILURE(Resume());
  const Came later = Put(keys[4], "v4");
  client_rests_ = false;
  EXPECT_EQ(CodeOf(refused), Code::kUnavailable);
  EXPECT_EQ(CodeOf(also_refused), Code::kUnavailable);
  EXPECT_EQ(versions().chunks().open(), 0U);
  EXPECT_EQ(CodeOf(later), Code::kOk);
  EXPECT_TRUE(Until([&] { return versions().chunks().count() == 0; })) << "the client gives the chunk back";
  EXPECT_EQ(Promoted(keys), (std::vector<std::string>{"v0", "v1", "not found", "not found", "v4"}));
}

// The client gives the older chunk back by its first put in the newer one.
TEST_F(MirroredShardTest, ARefusedDelegatedPutEndsTheOlderChunk) {
  of_client_.put_path = PutPath::kDelegate;
  steps_per_tidy_ = 500;  // No chunk gets too old.
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  const std::vector<std::string> keys = KeysOfOneHead(20);
  size_t next = 0;
  for (; delegated() < 8; ++next) {  // The first chunk is full then.
    ASSERT_TRUE(PutAndWait(keys[next], std::string(200, 'v')).ok());
    Rest(100);
  }
  ASSERT_EQ(versions().chunks().open(), 2U);
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_EQ(PutAndWait(keys[next], std::string(200, 'v')).code(), Code::kUnavailable);
  EXPECT_TRUE(Until([&] { return versions().chunks().count() == 0; }));
}

TEST_F(MirroredShardTest, RequestsThatWaitForTheMirrorEndWhenTheShardStops) {
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  mirror_->stuck = true;
  const Came put = Put("key", "value");
  Rest(500);
  const Came conditional = PutIfAbsent("key");
  Rest(500);
  EXPECT_FALSE(shard_->parked().for_medium.empty());
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_TRUE(shard_->parked().for_medium.empty());
  EXPECT_EQ(CodeOf(put), Code::kUnavailable);
  EXPECT_EQ(CodeOf(conditional), Code::kUnavailable);
}

TEST_F(MirroredShardTest, RequestsThatWaitForAWriterEndWhenTheShardStops) {
  of_client_.put_path = PutPath::kReserve;
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  client_rests_ = true;
  (void)Put("key", "value");
  ASSERT_TRUE(Until([&] { return versions().in_flight() == 1; }));
  const Came conditional = PutIfAbsent("key");
  ASSERT_TRUE(Until([&] { return shard_->parked().awaits_writers(); }));
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_FALSE(shard_->parked().awaits_writers());
  EXPECT_EQ(CodeOf(conditional), Code::kUnavailable);
}

// No cleaner runs, so there is no room before the shard stops, nor after that.
TEST_F(MirroredShardTest, RequestsThatWaitForRoomEndWhenTheShardStops) {
  of_client_.put_path = PutPath::kReserve;
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  Came last;
  for (int i = 0; i < 2000 && !shard_->parked().awaits_room(); ++i) {
    last = Put("key" + std::to_string(i), std::string(20'000, 'v'));
    ASSERT_TRUE(Until([&] { return last->has_value() || shard_->parked().awaits_room(); }));
  }
  ASSERT_TRUE(shard_->parked().awaits_room());
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_FALSE(shard_->parked().awaits_room());
  EXPECT_EQ(CodeOf(last), Code::kUnavailable);
}

// The shard hears of both at the same time.
TEST_F(MirroredShardTest, APutThatTheMirrorHasStoredIsAnsweredWhenTheShardStops) {
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  mirror_->stuck = true;
  const Came put = Put("key", "value");
  Rest(500);
  mirror_->stuck = false;
  mirror_->Step();
  network_.RunUntil(network_.Now() + std::chrono::milliseconds(1));
  (void)shard_->links()->Poll();
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_EQ(CodeOf(put), Code::kOk);
  EXPECT_EQ(Get("key"), "value");
}

// The medium damages the entry. It names the older version then, so the newer one has to wait for its entry again.
TEST_F(MirroredShardTest, APutWhoseEntryIsNotHeldIsNotAnsweredWhenTheShardStops) {
  ASSERT_NO_FATAL_FAILURE(ServeMirrorAndClient());
  mirror_->stuck = true;
  const Came older = Put("key", "older");
  Rest(500);
  index::Index& index = versions().part().index();
  const auto slot = index.Find(HashOf("key"), [](index::Slot, const format::IndexEntry&) { return true; });
  ASSERT_TRUE(slot.has_value());
  const format::EntryWord word = index.WordAt(*slot);
  const Came newer = Put("key", "newer");
  Rest(500);
  ASSERT_NE(index.WordAt(*slot).new_address(), word.new_address());
  index.StoreWord(*slot, word);
  mirror_->stuck = false;
  mirror_->Step();
  network_.RunUntil(network_.Now() + std::chrono::milliseconds(1));
  (void)shard_->links()->Poll();
  ASSERT_NO_FATAL_FAILURE(Stop());
  EXPECT_EQ(CodeOf(older), Code::kUnavailable);
  EXPECT_EQ(CodeOf(newer), Code::kUnavailable);
  EXPECT_EQ(Get("key"), "older");
  ASSERT_NO_FATAL_FAILURE(Resume());
  EXPECT_TRUE(Until([&] { return Get("key") == "newer"; }));
}

}  // namespace
}  // namespace erda::sim
