// The shard's clock stands before the deadline of a version while a put is not done that the version has decided.
#include <optional>

#include "base/hand_clock.h"
#include "base/server_time.h"
#include "server/crash_pool.h"
#include "sim/ports.h"

namespace erda::sim {
namespace {

using client::Engine;
using format::Counter;

class ClockWaitTest : public PortsTest {
 protected:
  static constexpr uint64_t kTtl = 10;  // Milliseconds.

  ClockWaitTest() { shard_options_.time = &time_; }
  void SetUp() override {
    PortsTest::SetUp();
    MakeClients();
  }
  void MakeClients() {
    writer_ = MakeClient("writer", 0, PutPath::kInline);
    slow_ = MakeClient("slow", 0);
    reader_ = MakeClient("reader", 1);
  }
  // Puts a value that expires, and returns its version.
  uint64_t PutFor(const std::string& key, const std::string& value) {
    std::optional<uint64_t> version;
    const auto done = [&](const Result<uint64_t>& put) { version = put.ok() ? *put : 0; };
    EXPECT_TRUE(writer_->Put(key, value, PutOptions{.ttl = std::chrono::milliseconds(kTtl)}, done).ok());
    EXPECT_TRUE(RunUntil({writer_.get()}, [&] { return version.has_value(); }));
    return version.value_or(0);
  }
  // Begins a put of the slow client, under the condition that the key has this version. The put gets its space, and its
  // value does not arrive.
  void BeginPut(const std::string& key, uint64_t version) {
    const uint64_t reserved = Count(Counter::kPutsReserved);
    const auto done = [this](const Result<uint64_t>& put) { slow_code_ = put.status().code(); };
    ASSERT_TRUE(slow_->Put(key, std::string(3000, 'n'), PutOptions{.if_version = version}, done).ok());
    ASSERT_TRUE(RunUntil({slow_.get()}, [&] { return Count(Counter::kPutsReserved) > reserved; }));
  }
  void PassTime(uint64_t millis) {
    clock_.now += std::chrono::milliseconds(millis);
    shard_->data().KeepTime();
  }
  void Increment(Engine& client, const std::string& key) {
    const auto done = [this](const Result<int64_t>& sum) { sums_.push_back(sum.ok() ? *sum : -1); };
    ASSERT_TRUE(client.Increment(key, 1, done).ok());
  }

  HandClock clock_;
  const ServerTime time_ = ServerTime::From(clock_, 1'000'000'000, 0, 0);
  std::unique_ptr<Engine> writer_;
  std::unique_ptr<Engine> slow_;
  std::unique_ptr<Engine> reader_;
  std::optional<Code> slow_code_;
  std::vector<int64_t> sums_;
};

TEST_F(ClockWaitTest, VersionDoesNotExpireBeforeThePutThatItDecided) {
  BeginPut("key", PutFor("key", "old"));
  PutFor("other", "value");
  PassTime(kTtl + 1);
  EXPECT_EQ(Get(*reader_, "key"), "old") << "absent would come before a put that needs it there";
  ASSERT_TRUE(RunUntil({slow_.get()}, [&] { return slow_code_.has_value(); }));
  EXPECT_EQ(slow_code_, Code::kOk);
  EXPECT_EQ(Get(*reader_, "key"), std::string(3000, 'n'));
  shard_->PassTime(std::chrono::milliseconds(5));
  PassTime(1);
  EXPECT_EQ(Get(*reader_, "other"), "not found") << "the clock goes on";
}

TEST_F(ClockWaitTest, WriterThatKeepsTheClockIsEndedAfterThreeSeconds) {
  BeginPut("key", PutFor("key", "old"));
  PassTime(kTtl + 1);
  ASSERT_TRUE(shard_->awaits_writers());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Count(Counter::kOverdue), 0U);
    shard_->PassTime(std::chrono::seconds(1));
    shard_->Poll();
  }
  EXPECT_EQ(Count(Counter::kOverdue), 1U);
  PassTime(1);
  EXPECT_FALSE(shard_->awaits_writers());
  EXPECT_EQ(Get(*reader_, "key"), "not found");
  EXPECT_FALSE(slow_code_.has_value());
}

TEST_F(ClockWaitTest, ValueThatArrivedWithoutAMessageLetsTheClockGoOn) {
  client::EngineOptions options;
  options.ack = Ack::kPlaced;
  options.put_path = PutPath::kReserve;
  const auto placing = Engine::Create(network_.CreateFabric("placing"), "sim:port0", options, network_);
  ASSERT_TRUE(placing.ok());
  std::optional<Code> code;
  const auto done = [&](const Result<uint64_t>& put) { code = put.status().code(); };
  const PutOptions condition{.if_version = PutFor("key", "old")};
  ASSERT_TRUE((*placing)->Put("key", std::string(3000, 'n'), condition, done).ok());
  ASSERT_TRUE(RunUntil({placing->get()}, [&] { return code.has_value(); }));
  EXPECT_EQ(code, Code::kOk);
  PutFor("other", "value");
  PassTime(kTtl + 1);
  ASSERT_TRUE(shard_->awaits_writers());
  shard_->PassTime(std::chrono::milliseconds(5));
  PassTime(1);
  EXPECT_FALSE(shard_->awaits_writers());
  EXPECT_EQ(Get(*reader_, "other"), "not found");
}

// Otherwise two counters with the same deadline could keep the clock in turn, and would never expire.
TEST_F(ClockWaitTest, IncrementAfterTheDeadlineWaitsUntilTheClockGoesOn) {
  PutFor("counter", std::string("\1\0\0\0\0\0\0\0", sizeof(int64_t)));
  BeginPut("key", PutFor("key", "old"));
  PassTime(kTtl + 1);
  Increment(*writer_, "counter");
  EXPECT_TRUE(RunUntil({writer_.get()}, [&] { return shard_->parked().awaits_writers(); }));
  EXPECT_TRUE(sums_.empty());
  ASSERT_TRUE(RunUntil({writer_.get(), slow_.get()}, [&] { return !sums_.empty() && slow_code_.has_value(); }));
  EXPECT_EQ(sums_, std::vector<int64_t>{1}) << "it begins at zero again";
  EXPECT_EQ(slow_code_, Code::kOk);
}

class HeldClockWaitTest : public ClockWaitTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServeWithJournal());
    MakeClients();
    disk_->HoldAll();
  }
  // Puts a value that expires; the disk gets it. Returns its version.
  uint64_t PutHeld(const std::string& key, const std::string& value) {
    std::optional<uint64_t> version;
    const auto done = [&](const Result<uint64_t>& put) { version = put.ok() ? *put : 0; };
    EXPECT_TRUE(writer_->Put(key, value, PutOptions{.ttl = std::chrono::milliseconds(kTtl)}, done).ok());
    EXPECT_TRUE(RunHolding([&] { return version.has_value(); }));
    return version.value_or(0);
  }
  bool RunHolding(const std::function<bool()>& done) {
    return RunUntil({writer_.get(), slow_.get(), reader_.get()}, [&] {
      disk_->HoldAll();
      return done();
    });
  }
};

TEST_F(HeldClockWaitTest, VersionDoesNotExpireBeforeThePutThatItDecidedIsHeld) {
  const uint64_t version = PutHeld("key", "old");
  std::optional<Code> code;
  const auto done = [&](const Result<uint64_t>& put) { code = put.status().code(); };
  const uint64_t puts = Count(Counter::kPutsInline);
  ASSERT_TRUE(writer_->Put("key", "new", PutOptions{.if_version = version}, done).ok());
  ASSERT_TRUE(RunUntil({writer_.get()}, [&] { return Count(Counter::kPutsInline) > puts; }));
  PassTime(kTtl + 1);
  EXPECT_EQ(Get(*reader_, "key"), "old") << "absent would come before a put that needs it there";
  EXPECT_FALSE(code.has_value());
  EXPECT_TRUE(RunHolding([&] { return code.has_value(); }));
  EXPECT_EQ(code, Code::kOk);
  EXPECT_EQ(Get(*reader_, "key"), "new");
}

}  // namespace
}  // namespace erda::sim
