// Two hostile clients and a good one talk to a live server of two shards.
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/engine.h"
#include "fuzz/check.h"
#include "fuzz/hostile_peer.h"
#include "fuzz/targets.h"
#include "sim/server_process.h"

namespace erda::fuzz {

namespace {

sim::Plan PlanOf() {
  sim::Plan plan;
  plan.shards = 2;
  plan.pool_size = 2 << 20;
  plan.index_grows = true;
  plan.reservations_per_client = 8;
  plan.flush_methods.fill(format::FlushMethod::kServerFlush);
  plan.tidy_chance = 0.3;
  return plan;
}

class Conversation {
 public:
  Conversation() {
    server_.Start();
    client::EngineOptions options;
    options.client_id = 1000;
    options.timeout = std::chrono::hours(1);
    engine_ = *client::Engine::Create(network_.CreateFabric("good"), sim::ServerAddress(0), options, network_);
    Await("the good client does not get in", [this] {
      const auto up = engine_->connections().Connect();
      return up.ok() && *up;
    });
    for (size_t i = 0; i < steady_.size(); ++i) Put(i, static_cast<uint8_t>(i));
  }

  void Do(const Action& action) {
    const size_t i = action.key % steady_.size();
    if (action.kind < HostilePeer::kOthers) {
      peers_[action.key / 128].Act(action);
    } else if (action.kind % 4 == 0) {
      action.what % 2 == 0 ? Put(i, action.what) : Get(i);
    }
    for (int steps = action.size % 128; steps > 0; --steps) Step();
  }

  void End() {
    for (int i = 0; i < 300; ++i) Step();
    for (size_t i = 0; i < steady_.size(); ++i) Get(i);
    for (HostilePeer& peer : peers_) peer.Leave();
    for (size_t i = 0; i < steady_.size(); ++i) Put(i, 'e');
    for (size_t i = 0; i < steady_.size(); ++i) Get(i);
    Check(engine_->stats().reconnects == 0, "the good client was sent away");
    engine_.reset();
    server_.Stop();
    Check(server_.failure().empty(), "the server failed", server_.failure());
  }

  void AddServed(HostilePeer::Served* sum) const {
    for (const HostilePeer& peer : peers_) {
      for (size_t op = 0; op < sum->size(); ++op) (*sum)[op] += peer.served()[op];
    }
  }
  [[nodiscard]] uint64_t violations() const { return server_.Count(format::Counter::kViolations); }

 private:
  void Step() {
    network_.Step();
    server_.Step(random_);
    for (HostilePeer& peer : peers_) peer.Poll();
    engine_->Poll();
  }
  void Await(const char* what, const std::function<bool()>& holds) {
    for (int steps = 0; !holds(); ++steps) {
      Check(steps < 1'000'000 && server_.failure().empty(), what, server_.failure());
      Step();
    }
  }
  static std::string KeyOf(size_t i) { return "steady" + std::to_string(i); }

  // Puts a value of a few bytes, or one that does not fit into a request.
  void Put(size_t i, uint8_t what) {
    const std::string value =
        KeyOf(i) + std::string(what % 8 == 0 ? 2500 : what % 100, static_cast<char>('a' + what % 26));
    std::optional<Status> came;
    Check(engine_->Put(KeyOf(i), value, [&](const Status& status) { came = status; }).ok(), "a put does not begin");
    Await("a put never ends", [&] { return came.has_value(); });
    // The hostile clients may take all the room in the log.
    Check(came->ok() || came->code() == Code::kResourceExhausted, "a put fails", came->ToString());
    if (came->ok()) steady_[i] = value;
  }
  void Get(size_t i) {
    std::optional<Result<std::string>> came;
    const Status began = engine_->Get(KeyOf(i), [&](const Result<std::string_view>& value) {
      came = value.ok() ? Result<std::string>(std::string(*value)) : Result<std::string>(value.status());
    });
    Check(began.ok(), "a get does not begin");
    Await("a get never ends", [&] { return came.has_value(); });
    const bool absent = came->status().code() == Code::kNotFound;
    Check(came->ok() || absent, "a get fails", came->status().ToString());
    Check((absent ? std::string() : **came) == steady_[i], "a key has another value", KeyOf(i));
  }

  const sim::Plan plan_ = PlanOf();
  fabric::SimNetwork network_{1, plan_.network};
  Random random_{1};
  sim::ServerProcess server_{network_, plan_};
  std::unique_ptr<client::Engine> engine_;
  std::array<HostilePeer, 2> peers_ = {HostilePeer(network_, "hostile0", sim::ServerAddress(0), 1, 0),
                                       HostilePeer(network_, "hostile1", sim::ServerAddress(0), 2, 1)};
  std::array<std::string, 4> steady_;  // the value of each key. Empty: the key is absent
};

}  // namespace

Spoken Speak(std::span<const uint8_t> input) {
  Conversation conversation;
  Spoken spoken;
  for (; input.size() >= sizeof(Action); input = input.subspan(sizeof(Action))) {
    Action action{};
    std::memcpy(&action, input.data(), sizeof(action));
    conversation.Do(action);
    ++spoken.actions;
  }
  conversation.End();
  conversation.AddServed(&spoken.served);
  spoken.violations = conversation.violations();
  return spoken;
}

}  // namespace erda::fuzz
