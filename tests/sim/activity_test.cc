// The shard's counts and times of its operations, by a clock of the test.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "format/activity.h"
#include "sim/ports.h"

namespace erda::sim {
namespace {

using format::Counter;

// A clock that goes on by a microsecond each time that the shard reads it.
class LookedAtClock final : public Clock {
 public:
  static constexpr uint64_t kNanos = 1000;
  [[nodiscard]] Nanoseconds Now() const override { return Nanoseconds(++looks * kNanos); }
  mutable uint64_t looks = 0;
};

class ActivityTest : public PortsTest {
 protected:
  [[nodiscard]] Activity Counted() const {
    Activity activity;
    shard_->control().AddActivity(&activity);
    return activity;
  }
  [[nodiscard]] OperationStats Of(const std::string& kind) const {
    for (const OperationStats& operation : Counted().operations) {
      if (operation.kind == kind) return operation;
    }
    ADD_FAILURE() << kind;
    return {};
  }
  [[nodiscard]] uint64_t Outcomes(const std::string& kind, Code code) const {
    return Of(kind).outcomes[static_cast<size_t>(code)];
  }
  // Expects `count` times, all of them in this bucket.
  static void ExpectTimes(const LatencyHistogram& times, size_t bucket, uint64_t count) {
    LatencyHistogram expected;
    expected.counts.at(bucket) = count;
    EXPECT_EQ(times.counts, expected.counts);
  }
  // Lets the time pass for clients and network, without a step of the shard.
  void PassTime(const std::vector<client::Engine*>& clients, Nanoseconds time) {
    const Nanoseconds end = network_.Now() + time;
    while (network_.Now() < end) {
      for (client::Engine* client : clients) client->Poll();
      network_.RunUntil(std::min(network_.Now() + Nanoseconds(1000), end));
    }
  }
};

// --- Readings of the clock

class ActivityLooks : public ActivityTest {
 protected:
  void SetUp() override {
    shard_options_.clock = &clock_;
    PortsTest::SetUp();
    client_ = MakeClient("client", 0, PutPath::kInline);
    other_ = MakeClient("other", 1, PutPath::kInline);
    // The shard times one in 64 of the steps that persist something. It times the first one now, and not those that
    // follow.
    ASSERT_EQ(Put(*client_, "key", "value"), Code::kOk);
    ASSERT_EQ(Put(*other_, "key", "value"), Code::kOk);
  }
  LookedAtClock clock_;
  std::unique_ptr<client::Engine> client_;
  std::unique_ptr<client::Engine> other_;
};

TEST_F(ActivityLooks, StepReadsTheClockTwiceForAnyNumberOfRequests) {
  const LatencyHistogram before = Of("put_inline").time;
  const uint64_t looks = clock_.looks;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(client_->Put("a" + std::to_string(i), "value", [](const Status&) {}).ok());
    ASSERT_TRUE(other_->Put("b" + std::to_string(i), "value", [](const Status&) {}).ok());
  }
  PassTime({client_.get(), other_.get()}, std::chrono::milliseconds(1));
  ASSERT_EQ(shard_->Poll(), 20U);
  EXPECT_EQ(clock_.looks, looks + 2);
  LatencyHistogram times = Of("put_inline").time;
  times -= before;
  ExpectTimes(times, format::BucketOf(LookedAtClock::kNanos), 20);
  EXPECT_EQ(times.sum_nanos, 20 * LookedAtClock::kNanos);
}

TEST_F(ActivityLooks, StepWithoutWorkDoesNotReadTheClock) {
  const uint64_t looks = clock_.looks;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(shard_->Poll(), 0U);
  EXPECT_EQ(clock_.looks, looks);
}

TEST_F(ActivityLooks, OneIn64OfTheStepsThatPersistIsTimed) {
  for (int i = 2; i < 64; ++i) ASSERT_EQ(Put(*client_, "key", "value"), Code::kOk);
  ExpectTimes(Counted().persist, format::BucketOf(LookedAtClock::kNanos), 1);
  ASSERT_EQ(Put(*client_, "key", "value"), Code::kOk);
  ExpectTimes(Counted().persist, format::BucketOf(LookedAtClock::kNanos), 2);
  EXPECT_EQ(Counted().persist.sum_nanos, 2 * LookedAtClock::kNanos);
  // The two timed puts read the clock twice more, so each of them took three microseconds.
  LatencyHistogram expected;
  expected.counts[format::BucketOf(LookedAtClock::kNanos)] = 63;
  expected.counts[format::BucketOf(3 * LookedAtClock::kNanos)] = 2;
  EXPECT_EQ(Of("put_inline").time.counts, expected.counts);
}

// --- Kinds and outcomes

TEST_F(ActivityTest, EachKindIsCountedByItsOutcome) {
  const auto client = MakeClient("client", 0, PutPath::kInline);
  const auto run = [&](const Status& started) {
    ASSERT_TRUE(started.ok()) << started.ToString();
    ASSERT_TRUE(RunUntil({client.get()}, [&] { return client->in_flight() == 0; }));
  };
  ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
  run(client->Put("key", "value", PutOptions{.if_version = kAbsent}, [](const Result<uint64_t>&) {}));
  run(client->Increment("key", 1, [](const Result<int64_t>&) {}));
  run(client->Increment("number", 1, [](const Result<int64_t>&) {}));
  run(client->Delete("key", [](const Status&) {}));
  run(client->Delete("key", [](const Status&) {}));
  run(client->Delete("key", DeleteOptions{.if_version = 1}, [](const Status&) {}));
  EXPECT_EQ(Outcomes("put_inline", Code::kOk), 1U);
  EXPECT_EQ(Outcomes("put_inline", Code::kConflict), 1U);
  EXPECT_EQ(Outcomes("increment", Code::kInvalidArgument), 1U);
  EXPECT_EQ(Outcomes("increment", Code::kOk), 1U);
  EXPECT_EQ(Outcomes("delete", Code::kOk), 1U);
  EXPECT_EQ(Outcomes("delete", Code::kNotFound), 1U);
  EXPECT_EQ(Outcomes("delete", Code::kConflict), 1U);
  uint64_t all = 0;
  for (const OperationStats& operation : Counted().operations) {
    EXPECT_EQ(operation.time.count(), operation.count()) << operation.kind;
    all += operation.count();
  }
  EXPECT_EQ(all, client->stats().requests);
}

TEST_F(ActivityTest, EachPutPathIsAKind) {
  const auto reserving = MakeClient("reserving", 0, PutPath::kReserve);
  ASSERT_EQ(Put(*reserving, "key", "value"), Code::kOk);
  EXPECT_EQ(Outcomes("reserve", Code::kOk), 1U);
  const auto delegating = MakeClient("delegating", 0, PutPath::kDelegate);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Put(*delegating, "key", "value"), Code::kOk);
  EXPECT_EQ(Outcomes("put_delegated", Code::kOk), Count(Counter::kPutsDelegated));
  EXPECT_GT(Outcomes("put_delegated", Code::kOk), 0U);
  EXPECT_GT(Outcomes("delegate", Code::kOk), 0U);
  EXPECT_EQ(Outcomes("put_inline", Code::kOk), Count(Counter::kPutsInline));
}

class ActivityOfCommits : public ActivityTest {
 protected:
  void SetUp() override { Serve({format::FlushMethod::kServerFlush, format::FlushMethod::kServerFlush}); }
};

TEST_F(ActivityOfCommits, ACommitIsAKind) {
  const auto client = MakeClient("client", 1, PutPath::kReserve);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
  EXPECT_EQ(Outcomes("reserve", Code::kOk), 3U);
  EXPECT_EQ(Outcomes("commit", Code::kOk), 3U);
  EXPECT_EQ(Of("commit").time.count(), 3U);
}

// --- Requests that wait: their time begins when the shard sees them

TEST_F(ActivityTest, TimeOfAPutIncludesItsWaitForAnotherClientsValue) {
  const auto writer = MakeClient("writer", 0);
  const auto waiter = MakeClient("waiter", 1, PutPath::kInline);
  ASSERT_EQ(Put(*waiter, "other", "value"), Code::kOk);
  std::optional<Code> written;
  ASSERT_TRUE(writer->Put("key", std::string(3000, 'n'), [&](const Status& status) { written = status.code(); }).ok());
  ASSERT_TRUE(RunUntil({writer.get()}, [&] { return Count(Counter::kPutsReserved) == 1; }));
  const LatencyHistogram before = Of("put_inline").time;
  std::optional<Code> waited;
  ASSERT_TRUE(waiter
                  ->Put("key", "value", PutOptions{.if_version = kAbsent},
                        [&](const Result<uint64_t>& put) { waited = put.status().code(); })
                  .ok());
  ASSERT_TRUE(RunUntil({waiter.get()}, [&] { return shard_->parked().awaits_writers(); }));
  const Nanoseconds seen = network_.Now();
  PassTime({}, std::chrono::milliseconds(5));
  ASSERT_TRUE(RunUntil({writer.get(), waiter.get()}, [&] { return waited.has_value(); }));
  EXPECT_EQ(*waited, Code::kConflict);
  const Nanoseconds longest = network_.Now() - seen + std::chrono::microseconds(1);
  LatencyHistogram times = Of("put_inline").time;
  times -= before;
  EXPECT_EQ(times.count(), 1U);
  EXPECT_GE(times.sum_nanos, 5'000'000U);
  EXPECT_LE(times.sum_nanos, static_cast<uint64_t>(longest.count()));
  ExpectTimes(times, format::BucketOf(times.sum_nanos), 1);
  EXPECT_EQ(Outcomes("put_inline", Code::kConflict), 1U);
}

TEST_F(ActivityTest, TimeOfAPutIncludesItsWaitForRoom) {
  const auto client = MakeClient("client", 0, PutPath::kInline);
  const std::string value(8000, 'x');
  bool waits = false;
  bool done = false;  // outlives the put that waits
  for (int i = 0; !waits; ++i) {
    done = false;
    // One value of each region is live, so that the cleaner has to walk through the region.
    const std::string key = i % 7 == 0 ? "live" + std::to_string(i) : "key";
    ASSERT_TRUE(client->Put(key, value, [&](const Status& status) { done = status.ok(); }).ok());
    ASSERT_TRUE(RunUntil({client.get()}, [&] { return done || Count(Counter::kPutsDelayed) > 0; }));
    waits = !done;
  }
  const OperationStats before = Of("put_inline");
  EXPECT_EQ(before.count(), before.time.count()) << "what waits was not answered";
  PassTime({}, std::chrono::milliseconds(5));
  ASSERT_TRUE(RunUntil({client.get()}, [&] {
    shard_->data().cleaner().Step();
    return client->in_flight() == 0;
  }));
  OperationStats after = Of("put_inline");
  after.time -= before.time;
  EXPECT_EQ(after.count(), before.count() + 1);
  EXPECT_EQ(after.time.count(), 1U);
  EXPECT_GE(after.time.sum_nanos, 5'000'000U);
  EXPECT_GT(Counted().clean_region.count(), 0U);
}

class ActivityOfTheHeldBack : public ActivityTest {
 protected:
  static constexpr uint32_t kPerSecond = 100;
  void SetUp() override {
    shard_options_.requests_per_second = kPerSecond;
    shard_options_.time = &time_;
    PortsTest::SetUp();
  }
  ServerTime time_{network_, 1};
};

TEST_F(ActivityOfTheHeldBack, TimeOfAPutBeyondTheRateIncludesItsWait) {
  const auto client = MakeClient("client", 0, PutPath::kInline);
  constexpr uint32_t kBurst = kPerSecond / 10;
  for (uint32_t i = 0; i < kBurst; ++i) ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
  const LatencyHistogram before = Of("put_inline").time;
  const Nanoseconds begin = network_.Now();
  ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
  LatencyHistogram times = Of("put_inline").time;
  times -= before;
  EXPECT_EQ(times.count(), 1U);
  EXPECT_GT(times.sum_nanos, 1'000'000U) << "one each 10 ms";
  EXPECT_LT(times.sum_nanos, static_cast<uint64_t>((network_.Now() - begin).count()));
}

// --- Fabrics

TEST_F(ActivityTest, FabricCountsItsConnectionsAndRequests) {
  auto client = MakeClient("client", 0, PutPath::kInline);
  const auto other = MakeClient("other", 1, PutPath::kInline);
  ASSERT_EQ(Put(*client, "key", "value"), Code::kOk);
  ASSERT_EQ(Put(*other, "key", "value"), Code::kOk);
  // Both ports are of simulated fabrics without a device, so they count as one fabric.
  Activity activity = Counted();
  ASSERT_EQ(activity.fabrics.size(), 1U);
  EXPECT_EQ(activity.fabrics[0].scheme, "sim");
  EXPECT_EQ(activity.fabrics[0].device, "");
  EXPECT_EQ(activity.fabrics[0].connections, 2U);
  EXPECT_EQ(activity.fabrics[0].requests, 2U);
  EXPECT_EQ(activity.fabrics[0].refused, 0U);
  client.reset();
  network_.KillNode("client");
  ASSERT_TRUE(RunUntil({other.get()}, [&] { return Count(Counter::kClients) == 1; }));
  EXPECT_EQ(Counted().fabrics[0].connections, 1U);
}

// --- Quantiles

TEST(LatencyHistogramTest, AQuantileLiesInItsBucket) {
  LatencyHistogram times;
  EXPECT_EQ(times.Quantile(0.5).count(), 0);
  times.counts[2] = 90;   // 512 to 1024 ns
  times.counts[10] = 10;  // 131072 to 262144 ns
  EXPECT_EQ(times.Quantile(0).count(), 512);
  EXPECT_EQ(times.Quantile(0.45).count(), 512 + 256);
  EXPECT_EQ(times.Quantile(0.9).count(), 1024);
  EXPECT_EQ(times.Quantile(0.95).count(), 131072 + 65536);
  EXPECT_EQ(times.Quantile(1).count(), 262144);
  times.counts[23] = 100;
  EXPECT_EQ(times.Quantile(1), LatencyHistogram::UpperBound(22)) << "of the last bucket only its beginning is known";
  times.counts = {};
  times.counts[0] = 4;
  EXPECT_EQ(times.Quantile(0.25).count(), 64);
}

}  // namespace
}  // namespace erda::sim
