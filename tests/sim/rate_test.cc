// A server that limits the requests of a client per second. The time is the simulator's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "client/engine.h"
#include "sim/server_process.h"

namespace erda::sim {
namespace {

class RateSimulation : public testing::Test {
 protected:
  static constexpr uint32_t kPerSecond = 1000;
  static constexpr uint32_t kBurst = kPerSecond / 10;

  void Start(uint32_t per_second) {
    plan_.requests_per_second = per_second;
    server_ = std::make_unique<ServerProcess>(network_, plan_);
    server_->Start();
  }
  std::unique_ptr<client::Engine> Connect(const std::string& name, uint64_t id) {
    client::EngineOptions options;
    options.client_id = id;
    options.queue_depth = 200;
    options.timeout = std::chrono::hours(1);
    auto engine = *client::Engine::Create(network_.CreateFabric(name), ServerAddress(0), options, network_);
    engines_.push_back(engine.get());
    for (int i = 0; i < 1000; ++i) {
      const auto up = engine->connections().Connect();
      EXPECT_TRUE(up.ok());
      if (!up.ok() || *up) break;
      Step();
    }
    return engine;
  }
  // A step of 10 us.
  void Step() {
    network_.RunUntil(network_.Now() + std::chrono::microseconds(10));
    server_->Step(random_);
    for (client::Engine* engine : engines_) engine->Poll();
  }
  [[nodiscard]] double Seconds() const { return std::chrono::duration<double>(network_.Now()).count(); }

  Plan plan_;
  fabric::SimNetwork network_{1};
  Random random_{1};
  std::unique_ptr<ServerProcess> server_;
  std::vector<client::Engine*> engines_;
};

TEST_F(RateSimulation, RequestsBeyondTheRateWaitInOrderAndDelayNoOthers) {
  Start(kPerSecond);
  const auto fast = Connect("fast", 1);
  const auto slow = Connect("slow", 2);
  constexpr uint32_t kPuts = 500;
  uint32_t begun = 0;
  std::vector<uint32_t> ended;
  const auto begin = [&] {
    const uint32_t number = begun++;
    EXPECT_TRUE(fast->Put("key" + std::to_string(number), "value",
                          [&ended, number](const Status& status) {
                            EXPECT_TRUE(status.ok()) << status.ToString();
                            ended.push_back(number);
                          })
                    .ok());
  };
  const double start = Seconds();
  uint32_t slow_ended = 0;
  bool slow_waits = false;
  double slow_began = 0;
  double slow_longest = 0;
  while (ended.size() < kPuts && Seconds() - start < 10) {
    while (begun < kPuts && begun - ended.size() < 150) begin();
    if (!slow_waits && Seconds() - start > 0.005 * slow_ended) {  // 200 in a second
      slow_waits = true;
      slow_began = Seconds();
      EXPECT_TRUE(slow->Put("slow", "value",
                            [&](const Status& status) {
                              EXPECT_TRUE(status.ok());
                              slow_waits = false;
                              ++slow_ended;
                              slow_longest = std::max(slow_longest, Seconds() - slow_began);
                            })
                      .ok());
    }
    Step();
  }
  ASSERT_EQ(ended.size(), kPuts);
  EXPECT_TRUE(std::ranges::is_sorted(ended)) << "not in order";
  // This is the simulator's time, not the machine's.
  EXPECT_GE(Seconds() - start, (kPuts - kBurst) / static_cast<double>(kPerSecond) - 0.01);
  EXPECT_LE(Seconds() - start, kPuts / static_cast<double>(kPerSecond) + 0.1);
  EXPECT_GT(slow_ended, 50U);
  EXPECT_LT(slow_longest, 0.002);
  EXPECT_EQ(server_->Count(format::Counter::kRefused), 0U);
  EXPECT_EQ(server_->Count(format::Counter::kViolations), 0U);
  EXPECT_EQ(fast->stats().reconnects, 0U);
}

TEST_F(RateSimulation, WithoutALimitNothingWaits) {
  Start(0);
  const auto client = Connect("client", 1);
  uint32_t ended = 0;
  const double start = Seconds();
  for (int i = 0; i < 150; ++i) {
    EXPECT_TRUE(client
                    ->Put("key" + std::to_string(i), "value",
                          [&](const Status& status) {
                            EXPECT_TRUE(status.ok());
                            ++ended;
                          })
                    .ok());
  }
  while (ended < 150 && Seconds() - start < 1) Step();
  EXPECT_EQ(ended, 150U);
  EXPECT_LT(Seconds() - start, 0.05);
}

TEST_F(RateSimulation, ClientThatLeavesTakesItsWaitingRequestsAlong) {
  Start(kPerSecond);
  auto gone = Connect("gone", 1);
  const auto other = Connect("other", 2);
  for (int i = 0; i < 190; ++i) EXPECT_TRUE(gone->Put("key", std::to_string(i), [](const Status&) {}).ok());
  for (int i = 0; i < 200; ++i) Step();
  engines_.erase(engines_.begin());
  gone.reset();
  for (int i = 0; i < 200; ++i) Step();
  EXPECT_EQ(server_->Count(format::Counter::kClients), 1U);
  bool put = false;
  EXPECT_TRUE(other->Put("key", "mine", [&](const Status& status) { put = status.ok(); }).ok());
  for (int i = 0; i < 200 && !put; ++i) Step();
  EXPECT_TRUE(put);
  // The server does not serve the waiting requests of the client that left.
  for (int i = 0; i < 30'000; ++i) Step();
  std::string value;
  EXPECT_TRUE(other->Get("key", [&](const Result<std::string_view>& got) { value = got.ok() ? *got : "?"; }).ok());
  for (int i = 0; i < 200 && value.empty(); ++i) Step();
  EXPECT_EQ(value, "mine");
}

}  // namespace
}  // namespace erda::sim
